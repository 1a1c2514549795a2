"""The ledger's constants, derived again from published start-up logs.

`sizer fit-ledger --data DIR` prints each beside the value in `engine_rules.yaml`, with its sample and
error. Only what a log lets one separate is fitted; the rest of the table counts buffers in the
engines' sources. One constant is fitted at a time, with the others as the table has them.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from service.calibration.fits.samples import (
    Sample,
    activation_base_gib,
    captured_gib,
    connected_context_gib,
    context_gib,
    estimated_gib,
    graph_kib,
    implied_base_gib,
    missed_gib,
    non_torch_unified_gib,
    peers_gib,
    sglang_peers_gib,
    trt_context_gib,
    trt_logit_bytes,
)
from service.calibration.logs.rows import Skipped, rows_at_hand
from service.calibration.startups import resolve_startup
from service.catalog.engine_rules import constants
from service.catalog.snapshot import Snapshot

STARTUPS: Final = ("vllm_startups.jsonl", "vllm_startups_2.jsonl")
SIGNIFICANT_DIGITS = 2
PRINTED_DECIMALS = 3
Statistic = Callable[[Sequence[float]], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """One constant as the logs have it, in the unit of the table."""

    name: str
    value: float
    sample_size: int
    error: float  # median distance of the sample from the value


def fit(folder: Path, catalog: Snapshot) -> tuple[Fitted, ...]:
    """Return every constant that start-up logs determine."""
    resolved = [resolve_startup(row, catalog) for row in rows_at_hand(folder, STARTUPS)]
    # A drafter captures and holds more than the model that the constants describe.
    startups = [each for each in resolved if not isinstance(each, Skipped) and each.log.drafts is None]
    samples = {
        name: [value for startup in startups if (value := sample(startup)) is not None]
        for name, (_, sample) in SAMPLES.items()
    }
    return tuple(_fitted(name, SAMPLES[name][0], values) for name, values in samples.items() if values)


def text_of(constants_fitted: Iterable[Fitted]) -> str:
    """Return the constants beside the table's, for a terminal."""
    lines = [f"{'constant':22} {'fitted':>8} {'table':>8} {'unit':8} {'rows':>4}  median error"]
    for fitted in constants_fitted:
        known = constants()[fitted.name]
        lines.append(
            f"{fitted.name:22} {fitted.value:8g} {known.value:8g} {known.unit:8} {fitted.sample_size:4}  "
            f"{fitted.error:g} {known.unit}"
        )
    stated = [name for name, known in constants().items() if known.sample_size == 0]
    return "\n".join([*lines, f"stated, not fitted: {', '.join(stated)}"]) + "\n"


def _fitted(name: str, statistic: Statistic, sample: Sequence[float]) -> Fitted:
    value = statistic(sample)
    error = significant(round(median(abs(each - value) for each in sample), PRINTED_DECIMALS))
    return Fitted(name=name, value=value, sample_size=len(sample), error=error)


def significant(value: float) -> float:
    """Return a value rounded to the digits that the samples support."""
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def middle(sample: Sequence[float]) -> float:
    """Return the median, rounded."""
    return significant(median(sample))


def upper(share: float) -> Statistic:
    """Return the statistic that at least this share of a sample does not exceed: rounded up, the safe side."""

    def statistic(sample: Sequence[float]) -> float:
        value = sorted(sample)[math.ceil(share * len(sample)) - 1]
        rounded = significant(value)
        step = 10.0 ** (math.floor(math.log10(abs(value))) - SIGNIFICANT_DIGITS + 1)
        return rounded if rounded >= value else significant(rounded + step)

    return statistic


SAMPLES: dict[str, tuple[Statistic, Sample]] = {
    "activation_base_first": (upper(2 / 3), implied_base_gib("activation_base_first")),
    "activation_base": (upper(9 / 10), activation_base_gib("activation_base")),
    "graph_dense_first": (
        middle,
        graph_kib(captured_gib, "graph_base_first", "graph_dense_first", of_experts=False, first=True),
    ),
    "graph_expert_first": (
        middle,
        graph_kib(captured_gib, "graph_base_first", "graph_dense_first", of_experts=True, first=True),
    ),
    "graph_dense_layer": (
        middle,
        graph_kib(captured_gib, "graph_base", "graph_dense_layer", of_experts=False, first=False),
    ),
    "graph_expert_layer": (
        middle,
        graph_kib(captured_gib, "graph_base", "graph_dense_layer", of_experts=True, first=False),
    ),
    "graph_estimate_dense": (
        middle,
        graph_kib(estimated_gib, "graph_estimate_base", "graph_estimate_dense", of_experts=False, first=False),
    ),
    "graph_estimate_expert": (
        middle,
        graph_kib(estimated_gib, "graph_estimate_base", "graph_estimate_dense", of_experts=True, first=False),
    ),
    "context_turing": (upper(4 / 5), context_gib("context_turing")),
    "context_ampere": (upper(4 / 5), context_gib("context_ampere")),
    "context_hopper": (upper(4 / 5), context_gib("context_hopper")),
    "context_hopper_since": (upper(4 / 5), context_gib("context_hopper_since")),
    "connected_context": (middle, connected_context_gib),
    "peers_counted": (upper(4 / 5), peers_gib("peers_counted", lambda rules: rules.non_torch_bytes_with_peers)),
    "peers": (upper(4 / 5), peers_gib("peers", lambda rules: rules.non_torch_bytes_with_peers)),
    "fused_reduce": (upper(3 / 4), peers_gib("fused_reduce", lambda rules: rules.fused_reduce_bytes)),
    "non_torch_unified": (middle, non_torch_unified_gib),
    "margin_first": (upper(19 / 20), missed_gib("margin_first")),
    "margin_captured": (upper(19 / 20), missed_gib("margin_captured")),
    "sglang_peers": (middle, sglang_peers_gib),
    "trtllm_context": (middle, trt_context_gib),
    "trtllm_buffers": (middle, trt_logit_bytes("trtllm_buffers")),
    "trtllm_first_buffers": (middle, trt_logit_bytes("trtllm_first_buffers")),
}
