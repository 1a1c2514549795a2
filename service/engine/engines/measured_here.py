"""What callers measured of one model on one type of GPU, as changes to what the rules predict of it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Final

from service.engine.inputs import KvCacheDtype, Layout, WeightFormat

MEASURED_HERE: Final = "measured-here"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What was measured: nothing that differs in one of these is changed by it, but as `MeasuredMemory` says."""

    model: str  # the catalog's id
    gpu: str
    layout: Layout
    weight_format: WeightFormat
    kv_cache_dtype: KvCacheDtype


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMemory:
    """A start-up log: by how much a ledger is changed.

    What was measured apart holds in every weight format of the model; weights, and what no line explains, in the
    format that was loaded.
    """

    id: str
    source: str
    of: Deployment
    error_fraction: float  # of the cache, with these changes [fraction]
    non_torch_bytes: int = 0  # added
    activation_factor: float = 1.0
    graph_factor: float = 1.0
    weight_bytes: int = 0  # added
    unexplained_bytes: int = 0  # added to what lies outside the framework's allocator, less where negative
    cache_bytes: int = 0  # of its own start-up, with these changes
    taken_bytes: int = 0  # by which that is less than predicted, more where negative


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredSteps:
    """A benchmark: what step times are multiplied with, and what requests wait outside steps beyond that."""

    id: str
    source: str
    of: Deployment
    error_fraction: float  # of its latencies, with these factors [fraction]
    prefill_factor: float = 1.0
    decode_factor: float = 1.0
    request_overhead_s: float = 0.0  # added


Measured = MeasuredMemory | MeasuredSteps


def memory_of(
    measured: Iterable[Measured], model: str, gpu: str, layout: Layout, weight_format: WeightFormat
) -> MeasuredMemory | None:
    """Return what start-ups of a model, GPU and layout measured, their mean; None where none did.

    Those in the format that is loaded speak alone where there are any. The error is the largest of what a row's own
    changes leave and how far the rows are from their mean, of their caches.
    """
    place = (model, gpu, layout)
    alike = [
        each
        for each in measured
        if isinstance(each, MeasuredMemory) and (each.of.model, each.of.gpu, each.of.layout) == place
    ]
    same = [each for each in alike if each.of.weight_format == weight_format]
    rows = same or alike
    if not rows:
        return None
    taken = fmean(each.taken_bytes for each in rows)
    apart = (abs(each.taken_bytes - taken) / each.cache_bytes for each in rows if each.cache_bytes)
    return MeasuredMemory(
        id=", ".join(each.id for each in rows),
        source="; ".join(each.source for each in rows),
        of=rows[0].of,
        error_fraction=round(max(*(each.error_fraction for each in rows), *apart, 0.0), 6),
        non_torch_bytes=round(fmean(each.non_torch_bytes for each in rows)),
        activation_factor=fmean(each.activation_factor for each in rows),
        graph_factor=fmean(each.graph_factor for each in rows),
        weight_bytes=round(fmean(each.weight_bytes for each in same)) if same else 0,
        unexplained_bytes=round(fmean(each.unexplained_bytes for each in same)) if same else 0,
        cache_bytes=round(fmean(each.cache_bytes for each in rows)),
        taken_bytes=round(taken),
    )


def steps_of(measured: Iterable[Measured], of: Deployment) -> MeasuredSteps | None:
    """Return what benchmarks of this very deployment measured, their geometric mean; None where none did.

    Its error is the largest of what a row's own factors leave and how far the rows are from their mean.
    """
    rows = [each for each in measured if isinstance(each, MeasuredSteps) and each.of == of]
    if not rows:
        return None
    prefill = exp(fmean(log(each.prefill_factor) for each in rows))
    decode = exp(fmean(log(each.decode_factor) for each in rows))
    spread = max(max(abs(log(each.prefill_factor / prefill)), abs(log(each.decode_factor / decode))) for each in rows)
    return MeasuredSteps(
        id=", ".join(each.id for each in rows),
        source="; ".join(each.source for each in rows),
        of=of,
        error_fraction=max(spread, *(each.error_fraction for each in rows)),
        prefill_factor=prefill,
        decode_factor=decode,
        request_overhead_s=fmean(each.request_overhead_s for each in rows),
    )
