"""Step times of a GPU whose kernels nobody measured: those of the nearest GPU of its generation, in proportion.

    time(GPU) = time(sibling) x roofline(GPU) / roofline(sibling)       at each knot

Kernels are written for a generation's cores: cards of one generation run the same ones, and differ in bandwidth, clocks
and links. So a GPU that is nowhere better than its sibling is nowhere faster, and what an estimate gets wrong about a
model's kernels it gets wrong for both alike, and leaves the ratio.

Source:
    G. X. Yu, Y. Gao, P. Golikov, G. Pekhimenko, Habitat: a runtime-based computational performance predictor for deep
    neural network training (USENIX ATC 2021), section 3.3: a kernel's time on one GPU, scaled by both GPUs' bandwidth
    and compute, tells its time on the other.
"""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import files
from math import log
from typing import Any, Final

import yaml

from service.engine.derived import derived
from service.engine.inputs import Gpu
from service.performance.fitted import generation_of
from service.performance.tables import StepTables

CARRIED: Final = "no kernels were measured on {gpu}; times of {sibling}, as the roofline of one is to that of the other"

# Of kernels measured on both (H100 and H200, B200 and GB200, B300 and GB300; seven models), nine in ten carried times
# are within 0.10 of the measured ones, where the roofline's median is 0.20 off. Cards with less power differ by more.
CARRIED_ERROR: Final = 0.2

# Data sheets and cards of one GPU differ by less: B200 is stated with 7.7 and with 8 TB/s.
ALIKE: Final = 1.1


@derived(1)
def sibling_of(gpu: Gpu) -> Gpu | None:
    """Return the GPU of the same generation, with measured kernels, that is nearest in bandwidth and in peak.

    None for a GPU with kernels of its own, and for a generation that has none.
    """
    if gpu.measured_as is not None and not _is_altered(gpu):
        return None
    alike = [each for each in measured_gpus() if _kin(each) == _kin(gpu)]
    return min(alike, key=lambda each: _distance(each, gpu), default=None)


def _is_altered(gpu: Gpu) -> bool:
    """Return whether a GPU is a copy of a measured one, under its name, with another bandwidth or other peaks."""
    measured = next((row for row in _rows() if row["measured_as"] == gpu.measured_as), None)
    if measured is None:
        return False
    ratios = [gpu.memory_bandwidth_bytes_per_s / measured["memory_bandwidth_bytes_per_s"]]
    peaks = measured["peak_flop_per_s"]
    ratios += [peak / peaks[name] for name, peak in gpu.peak_flop_per_s.items() if name in peaks]
    return bool(max(max(ratio, 1 / ratio) for ratio in ratios) > ALIKE)


def _kin(gpu: Gpu) -> tuple[str, str]:
    return gpu.vendor, generation_of(gpu)


def _distance(one: Gpu, other: Gpu) -> float:
    """Return how far two GPUs are apart: the logarithms of how often one's figures are the other's, together."""
    bandwidths = one.memory_bandwidth_bytes_per_s / other.memory_bandwidth_bytes_per_s
    return abs(log(bandwidths)) + abs(log(_peak(one) / _peak(other)))


def _peak(gpu: Gpu) -> float:
    return gpu.peak_flop_per_s.get("fp16") or max(gpu.peak_flop_per_s.values())


@lru_cache(maxsize=1)
def measured_gpus() -> tuple[Gpu, ...]:
    """Return the GPUs whose kernels were measured, as they were then, whatever a catalog says of them now."""
    return tuple(Gpu(**row) for row in _rows())


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, Any], ...]:
    text = files("service.performance").joinpath("data/measured_gpus.yaml").read_text(encoding="utf-8")
    return tuple(yaml.load(text, Loader=yaml.CSafeLoader)["gpus"])


def carried_over(known: StepTables, estimated: StepTables, estimated_known: StepTables) -> StepTables:
    """Return the times of one GPU, from those of another and the roofline's of both.

    >>> from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
    >>> def flat(seconds):
    ...     rows = ((seconds,) * len(CONTEXTS),) * len(REQUESTS)
    ...     return StepTables(decode=rows, tokens=(seconds,) * len(TOKENS), attention=(seconds,) * len(ATTENDED))
    >>> slower = carried_over(flat(0.25), flat(0.5), flat(0.125))
    >>> slower.decode[0][0], slower.tokens[0], slower.attention[0]
    (1.0, 1.0, 1.0)
    """
    return StepTables(
        decode=tuple(
            _scaled(*rows) for rows in zip(known.decode, estimated.decode, estimated_known.decode, strict=True)
        ),
        tokens=_scaled(known.tokens, estimated.tokens, estimated_known.tokens),
        attention=_scaled(known.attention, estimated.attention, estimated_known.attention),
        place=known.place,
    )


def _scaled(times: Sequence[float], wanted: Sequence[float], beside: Sequence[float]) -> tuple[float, ...]:
    """Return each time in the proportion of two others; a part that a model does not have takes none."""
    both = zip(times, wanted, beside, strict=True)
    return tuple([time * one / other if other else time for time, one, other in both])  # faster than of a generator
