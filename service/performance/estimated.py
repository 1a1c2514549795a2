"""Step times from data sheets, at the efficiency of kernels; measured ones of more ranks, where their link was slow."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from service.engine.time.steps import Deployed
from service.performance.fitted import efficiencies_for
from service.performance.kernel_tables import KernelTables
from service.performance.kernels import measured_step_tables
from service.performance.links import sound_ranks
from service.performance.roofline import FLOOR, own_share, roofline_tables
from service.performance.siblings import carried_over
from service.performance.tables import StepTables
from service.performance.triton import attention_fraction, note_of_triton
from service.performance.unpacked import note_of_unpacked
from service.performance.workload import Workload, workload_of

SLOW_LINK: Final = (
    "{ranks} ranks of {gpu} were measured over a slow link; times of {sound}, as the roofline of the one is to that of "
    "the other"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimates:
    """Step times by the roofline: at the efficiency of kernels, and at that of physics."""

    estimated: StepTables
    floor: StepTables


def estimates_of(key: Deployed) -> Estimates:
    """Return step times by the roofline, both ways."""
    of_rank = workload(key)
    floor = roofline_tables(of_rank, key.gpu, key.layout, FLOOR)
    return Estimates(estimated=estimated_step_tables(key, of_rank), floor=floor)


def estimated_step_tables(key: Deployed, of_rank: Workload | None = None) -> StepTables:
    """Return step times from data sheets and the efficiency of kernels, before any factor.

    Args:
        key: a deployment.
        of_rank: its `workload`, where that is known.
    """
    reached = efficiencies_for(key.gpu, key.rules.engine)
    of_attention = attention_fraction(key, reached.attention_compute_fraction)
    reached = replace(reached, attention_compute_fraction=of_attention)
    return roofline_tables(of_rank or workload(key), key.gpu, key.layout, reached)


def note_of_kernels(key: Deployed) -> str:
    """Return what is said of kernels that go slower than others of their GPU; nothing of others."""
    return "; ".join(filter(None, (note_of_unpacked(key, workload(key)), note_of_triton(key))))


def workload(key: Deployed) -> Workload:
    """Return what one rank of a deployment reads and computes."""
    return workload_of(key.model.architecture, key.checkpoint.quantization, key.gpu, key.layout, key.kv_cache_dtype)


def over_sound_link(key: Deployed) -> Deployed:
    """Return a deployment, or the same over as many ranks as were measured over a link as fast as its kind."""
    ranks = sound_ranks(key.gpu)
    if ranks is None or key.layout.tensor_parallel_size <= ranks:
        return key
    return replace(key, layout=replace(key.layout, tensor_parallel_size=ranks))


def kernels_over_sound_link(
    key: Deployed,
    tables: KernelTables | None = None,
    estimated: Callable[[Deployed], StepTables] = estimated_step_tables,
) -> StepTables:
    """Return the times of measured kernels; over a slow link, those of fewer ranks in proportion of their rooflines.

    Args:
        key: a deployment.
        tables: where measured kernels are found.
        estimated: what tells times by the roofline; whoever keeps them need not compute them anew.

    Raises:
        NotMeasuredError: neither were measured.
    """
    there = over_sound_link(key)
    measured = measured_step_tables(there, tables)
    if there is key:
        return measured
    return carried_over(measured, estimated(key), estimated(there))


def note_of_link(key: Deployed) -> str:
    """Return what is said of such times; nothing of others."""
    there = over_sound_link(key).layout.tensor_parallel_size
    ranks = key.layout.tensor_parallel_size
    return "" if there == ranks else SLOW_LINK.format(ranks=ranks, gpu=key.gpu.id, sound=there)


def own_share_of(key: Deployed) -> float:
    """Return the part of a long step that goes by the tokens of a rank's own copy of the attention. [fraction]."""
    return 1.0 if key.layout.data_parallel_size == 1 else own_share(workload(key), key.gpu, key.layout)
