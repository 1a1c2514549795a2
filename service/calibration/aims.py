"""What the engine aims at, what was reached, and why a source that was left out of its fit is missed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from service.calibration.lines import Line, per_cent
from service.performance.fitted import BESIDE, LeftOut

RECENT: Final = "logged start-ups, vLLM 0.10 and newer: "
PILE_UP, WITHIN, KEPT = (
    "whether arrivals pile up",
    "within the expected error",
    "limits are kept by what is sized at 0.9",
)
NEWER: Final = ("h100", "h200", "h20-", "gh200", "b200", "b300", "gb200", "gb300", "rtx-5", "rtx-pro")
# What a source leaves open, by its beginning: as its own files say, or do not say.
REASONS: Final[dict[str, str]] = {
    "MLPerf": "its logs state no input lengths and seldom the engine's version, batch or layout; servers run at the "
    "edge of what holds, where a few per cent of a step decide whether a queue grows: what v5.1 shows of Llama 2 70B "
    "on H200 goes from 22 % too fast to twice as slow as one speed does by 29 %; AMD's harness plans several "
    "iterations at once (`num_scheduler_steps`), how many is not stated, and first tokens take six",
    "aiconfigurator": "token budgets and memory shares are not stated; its TensorRT-LLM runs on B200 and ML.ENERGY's "
    "runs of that GPU contradict each other by 45 %, so that no constants meet both",
    "InferenceX experimental": "no engine version; the source calls the work experimental",
    "TensorRT-LLM perf-overview": "token budgets and batches are not stated, and were tuned for each row",
    "GPUStack": "all prompts are sent at once, so that TTFT is a place in one queue; one or two rows of each setting; "
    "servers were cold: at 4 requests a second first tokens of Qwen3.5-35B-A3B have a mean of 126 ms beside a median "
    "of 42, as one stall of 6 s makes; its runs of vLLM on A100 are two models, of which one judges the other: "
    "experts in mxfp4 on one GPU, and in bf16 on eight; "
    "its H100 of 2025 are half as fast as others' under all three engines: Qwen3-32B in bf16 makes a token every 44 "
    "ms on one, whose memory reads the weights in 19",
    "CloudRift": "several servers stand behind one address, whose balance is not stated",
    "dstack TGI": "settings partly assumed: neither rate nor layout stands in its file; its vLLM 0.6.3, built on "
    "ROCm 6.1, reads 782 tokens a second, which is 6 % of what the GPUs can compute",
    "dstack prefill": "how GPUs were split between prefill and decode is stated for one layout alone",
    "inference-sim/training": "an overloaded run, most of it timed out: only its verdict is a measurement",
    "inference-sim/sim": "rates and lengths are second-hand, and prefixes are shared",
    "LottoLotto": "one home rig, whose cards are held to 220 of 350 W and joined by PCIe 3.0 (its HARDWARE.md)",
    "SGLang cookbook": "ten to some hundred requests of each setting, of warm and cold servers; each page by whoever "
    "added it: on MI300X a user alone waits 385 ms for first tokens of MiniMax-M2 there, and one of sixteen 148",
    "vllm-project/recipes": "no engine version, and few runs of each model",
    "pegainfer": "short runs on one card, whose host is not stated",
    "Argonne": "neither engine version, weight format nor form factor stands in its file; 64 requests to Llama 3 70B "
    "take 143 s on four MI300X and 86 s on four MI250, which have less of everything",
    "ML.ENERGY": "neither lengths nor engine versions stand in its file; contradicts InferenceX on B200, where the "
    "pace of its small models varies by half at a third of the GPU's power: they waited for their hosts",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Aim:
    """One aim: what was wanted and what was reached, both as shares."""

    name: str
    wanted: float
    reached: float | None  # None: nothing to judge by
    is_floor: bool = False  # at least, not at most

    @property
    def is_met(self) -> bool | None:
        """Return whether the aim is met; None where nothing speaks of it."""
        if self.reached is None:
            return None
        return self.reached >= self.wanted if self.is_floor else self.reached <= self.wanted

    def row(self) -> str:
        """Return the aim as a row of the page."""
        sign, met = ("at least" if self.is_floor else "at most"), {True: "yes", False: "no", None: "not judged"}
        return f"| {self.name} | {sign} {per_cent(self.wanted)} | {per_cent(self.reached)} | {met[self.is_met]} |"


def aims_of(lines: Sequence[Line], unseen: Sequence[LeftOut]) -> tuple[Aim, ...]:
    """Return every aim beside what the report and the left-out sources say of it."""
    return (
        Aim(name="cache plans equal to vLLM's", wanted=1.0, reached=_share(lines, "vLLM's cache plan"), is_floor=True),
        *(_of_startups(lines, *each) for each in STARTUPS),
        *(_of_unseen(name, quantity, wanted, unseen, holds) for name, quantity, wanted, holds in UNSEEN),
        Aim(name="whether an open loop saturates", wanted=0.95, reached=_share(lines, PILE_UP), is_floor=True),
        Aim(name=WITHIN, wanted=0.8, reached=_share(lines, WITHIN), is_floor=True),
        Aim(name=KEPT, wanted=0.85, reached=_share(lines, KEPT), is_floor=True),
    )


APART: Final = frozenset({"sglang"})  # engines with an aim of their own


def _is_newer(each: LeftOut) -> bool:
    return each.gpu.startswith(NEWER) and each.engine not in APART


def _is_older(each: LeftOut) -> bool:
    return each.gpu.startswith(("a100", "l40s")) and each.engine not in APART


def _is_other(each: LeftOut) -> bool:
    return each.engine in APART or each.gpu.startswith("mi")


Holds = Callable[[LeftOut], bool]
UNSEEN: Final[tuple[tuple[str, str, float, Holds], ...]] = (
    ("end to end, left-out sources: median", "e2e", 0.065, lambda each: True),  # noqa: ARG005 - all of them
    ("TTFT, left-out sources: median", "ttft", 0.15, lambda each: True),  # noqa: ARG005 - all of them
    ("TPOT, left-out sources on Hopper and Blackwell: median", "tpot", 0.07, _is_newer),
    ("TPOT, left-out sources on A100 and L40S: median", "tpot", 0.10, _is_older),
    ("TPOT, left-out sources of SGLang and AMD: median", "tpot", 0.15, _is_other),
)


# By quantity: the figure of its line, and what is wanted of it.
STARTUPS: Final[tuple[tuple[str, str, str, float], ...]] = (
    ("pools of start-ups: median", "kv_cache_bytes", "median", 0.005),
    ("pools of start-ups: mean", "kv_cache_bytes", "mean", 0.015),
    ("pools of start-ups: on the safe side", "kv_cache_bytes", "safe", 0.8),
    ("graphs of start-ups: median", "cuda_graph_bytes", "median", 0.2),
    ("non-torch memory of start-ups: median", "non_torch_bytes", "median", 0.2),
)


def _of_startups(lines: Sequence[Line], name: str, quantity: str, figure: str, wanted: float) -> Aim:
    line = next((line for line in lines if line.subject == RECENT + quantity), None)
    reached: float | None = None if line is None else getattr(line, figure)
    return Aim(name=name, wanted=wanted, reached=reached, is_floor=figure == "safe")


def _of_unseen(name: str, quantity: str, wanted: float, unseen: Sequence[LeftOut], holds: Holds) -> Aim:
    own = [each for each in unseen if each.basis != BESIDE and each.quantity == quantity and holds(each)]
    return Aim(name=name, wanted=wanted, reached=_middle(own))


def _middle(classes: Sequence[LeftOut]) -> float | None:
    """Return the median of the classes' medians, each counted as often as it has figures; None without any."""
    medians = [each.median_error_fraction for each in classes for _ in range(each.figures)]
    return median(medians) if medians else None


def _share(lines: Iterable[Line], words: str) -> float | None:
    """Return the share of all rows of the lines that are about something."""
    counted = [(line.count, line.equal) for line in lines if words in line.subject and line.equal is not None]
    total = sum(count for count, _ in counted)
    return sum(count * share for count, share in counted) / total if total else None


def aims_table(aims: Iterable[Aim]) -> str:
    """Return the aims as a table of the page."""
    head = "| aim | wanted | reached | met |\n|---|---|---|---|\n"
    return head + "".join(f"{aim.row()}\n" for aim in aims)


def sources_table(unseen: Sequence[LeftOut]) -> str:
    """Return, for each left-out source, its median by quantity, and what it leaves open where an aim is missed."""
    quantities = ("e2e", "ttft", "tpot", "throughput")
    head = f"| left-out source | {' | '.join(quantities)} | what it leaves open |\n|---|---|---|---|---|---|\n"
    rows = []
    for source in sorted({each.source for each in unseen}):
        own = [each for each in unseen if each.source == source and each.basis != BESIDE]
        cells = (per_cent(_middle([each for each in own if each.quantity == name])) for name in quantities)
        why = next((reason for start, reason in REASONS.items() if source.startswith(start)), "")
        rows.append(f"| {source} | {' | '.join(cells)} | {why} |\n")
    return head + "".join(rows)
