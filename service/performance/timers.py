"""Step timers for any model, GPU and layout: measured kernels, else the roofline, each built once."""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.engines.measured_here import MEASURED_HERE, Deployment, MeasuredSteps, steps_of
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu
from service.engine.kept import Kept
from service.engine.time.results import Basis
from service.engine.time.simulations import Simulations
from service.engine.time.steps import Deployed, Timing
from service.performance.between import between, neighbours, note_of
from service.performance.fitted import SOURCE, SPREAD, Row, efficiencies_for, factors_of, generation_of, row_for
from service.performance.formats import Rated, before, compared, in_order, in_proportion
from service.performance.kernel_tables import KernelTables, NotMeasuredError, in_process
from service.performance.kernels import kernels_of, measured_step_tables
from service.performance.roofline import FLOOR, roofline_tables
from service.performance.tables import Factors, StepTables, TabledSteps, calibrated
from service.performance.workload import Workload, workload_of

MEASURED: Final = "measured-kernels"
ROOFLINE: Final = "roofline"
KERNELS_SOURCE: Final = "aiconfigurator-core 0.12, kernels measured on this GPU (github.com/ai-dynamo/aiconfigurator)"
MAX_TIMERS: Final = 2048  # about 10 kB each
MAX_FORMATS: Final = 256  # about 30 kB each
UNLIKE: Final = "formats are compared on one basis, and no kernels of the published {known} were measured"
PROPORTION: Final = "times of {known} on this layout, as the bytes and multiplications of {own} are to its own"


class KernelTimers:
    """Builds timers, and keeps them with what was simulated; implements `StepTimers`. Safe to share between threads."""

    def __init__(self, tables: KernelTables | None = None) -> None:
        """Start without any.

        Args:
            tables: where measured kernels are found; None: built in this process, and kept in its memory.
        """
        self.simulations = Simulations()
        self.tables = tables or in_process()
        self._formats = Formats(self.tables)
        self._timers: Kept[Timing] = Kept(MAX_TIMERS)
        self._quick: Kept[Timing] = Kept(MAX_TIMERS // 4)

    def close(self) -> None:
        """Give back what building tables took."""
        self.tables.close()

    def timer(self, key: Deployed) -> Timing | None:
        """Return the times of a deployment; the first call of a combination builds its tables."""
        if not _can_time(key.gpu):
            return None
        kept = self._timers.get(key.key)
        if kept is not None:
            return kept
        return self._timers.get_or(key.key, lambda: build_timer(key, self._formats))

    def quick(self, key: Deployed) -> Timing | None:
        """Return the roofline's times of a deployment: ready in milliseconds, the same whenever they are asked for."""
        if not _can_time(key.gpu):
            return None
        return self._quick.get_or(key.key, lambda: roofline_timer(key, "a quick estimate"))


def _can_time(gpu: Gpu) -> bool:
    """Return whether a GPU states any peak to compute with."""
    return bool(gpu.peak_flop_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Times of a deployment before its factors, and the row that has these."""

    key: Deployed
    tables: StepTables
    row: Row
    basis: str
    note: str

    @property
    def knowledge(self) -> float:
        """Return how much is known of the very class of measured kernels; 0 of anything else."""
        return self.row.knowledge(kernel_class(self.key)) if self.basis == MEASURED else 0.0


class Formats:
    """What is known of a model's formats on one layout, kept: each is put in order beside several others."""

    def __init__(self, tables: KernelTables) -> None:
        """Start with nothing known but where measured kernels are found."""
        self.tables = tables
        self._rated: Kept[Rated] = Kept(MAX_FORMATS)

    def ordered(self, times: _Times, here: MeasuredSteps | None) -> Rated:
        """Return a deployment's step times, in order beside those of the formats that are better known, the best last.

        Args:
            times: of the deployment before its factors.
            here: what a caller measured of a deployment whose times are asked for, in any format.
        """

        def ordered() -> Rated:
            steps = _calibrated(times, here)
            for other in _better_known(times, self.tables):
                steps = in_order(steps, self.ordered(other, here))
            return steps

        return self._rated.get_or((times.key.key, here), ordered)


def build_timer(key: Deployed, formats: Formats) -> Timing:
    """Return new times: measured kernels where there are any, else the roofline, which says why."""
    times, here = _nearest(key, formats.tables), _measured_here(key)
    return _timing(times, formats.ordered(times, here).steps, here)


def _own(key: Deployed, tables: KernelTables) -> _Times:
    """Return what is known of the very format."""
    try:
        measured = measured_step_tables(key, tables)
        return _times(key, measured, MEASURED, _stand_in(key, measured))
    except NotMeasuredError as refusal:
        return _between(key, tables) or _estimated(key, str(refusal))


def _between(key: Deployed, tables: KernelTables) -> _Times | None:
    """Return times between those of fewer and of more copies of the attention; None where either was not measured."""
    pair = neighbours(key.layout)
    if pair is None or key.gpu.measured_as is None:
        return None
    try:
        fewer, more = ((layout, measured_step_tables(replace(key, layout=layout), tables)) for layout in pair)
        measured = between(key, fewer, more)
    except NotMeasuredError:
        return None
    stand_in = _stand_in(key, measured)
    return _times(key, measured, MEASURED, "; ".join(filter(None, (note_of(key.layout, *pair), stand_in))))


def _estimated(key: Deployed, note: str) -> _Times:
    return _times(key, estimated_step_tables(key), ROOFLINE, note)


def _times(key: Deployed, tables: StepTables, basis: str, note: str) -> _Times:
    return _Times(key=key, tables=tables, row=_row(key, basis), basis=basis, note=note)


def _row(key: Deployed, basis: str) -> Row:
    return row_for(basis, key.rules.engine, key.rules.rules_version, generation_of(key.gpu), kernel_class(key))


def _nearest(key: Deployed, tables: KernelTables) -> _Times:
    """Return what is known of a format, or of the one that the model is published in where that is better known.

    A format's own kernels go with the constants of the published one where its class was not fitted: what a host does,
    and how busy kernels keep a GPU, goes with the model and its layout. What nobody fitted is timed on the basis of
    the published format, in proportion where it has no kernels that formats are compared by.
    """
    own, published = _own(key, tables), replace(key, checkpoint=own_checkpoint(key.model))
    if not has_other_weights(key, published) or own.knowledge:
        return own
    known = _own(published, tables)
    if known.basis == ROOFLINE:
        return (
            own if own.basis == ROOFLINE else _estimated(key, UNLIKE.format(known=published.checkpoint.weight_format))
        )
    if own.basis == MEASURED and not own.tables.place and key.checkpoint.weight_format in compared(key.gpu):
        return replace(own, row=_as_unsure(known.row, own.row))
    note = PROPORTION.format(known=published.checkpoint.weight_format, own=key.checkpoint.weight_format)
    return replace(
        own,
        tables=in_proportion(known.tables, estimated_step_tables(key), estimated_step_tables(published)),
        row=_as_unsure(known.row, own.row),
        basis=ROOFLINE,
        note="; ".join(filter(None, (own.note, note))),
    )


def _as_unsure(known: Row, own: Row) -> Row:
    """Return a row's constants, with the larger expected errors of it and of the one in whose place it stands."""
    row = max(known, own, key=lambda row: row.expected_error_fraction)
    errors = {"expected_error_fraction": row.expected_error_fraction, "pace_error_fraction": row.pace_error_fraction}
    return known.model_copy(update=errors)


def has_other_weights(key: Deployed, other: Deployed) -> bool:
    """Return whether two deployments' weights are stored unlike."""
    return key.checkpoint.quantization.scheme != other.checkpoint.quantization.scheme


def _better_known(times: _Times, tables: KernelTables) -> list[_Times]:
    """Return the formats that are better known, the best last; of those known alike, the ones that come first."""
    key, better = times.key, []
    formats = before(key.model, key.gpu)
    schemes = [each.quantization.scheme for each in formats]
    scheme = key.checkpoint.quantization.scheme
    own = times.knowledge, -(schemes.index(scheme) if scheme in schemes else len(schemes))
    for place, checkpoint in enumerate(formats):
        in_format = replace(key, checkpoint=checkpoint)
        # What nobody fitted needs no tables to be known for less.
        if schemes[place] != scheme and (_row(in_format, MEASURED).knowledge(kernel_class(in_format)), -place) > own:
            other = _nearest(in_format, tables)
            if (other.knowledge, -place) > own:
                better.append((other.knowledge, -place, other))
    return [other for *_, other in sorted(better, key=lambda each: each[:2])]


def _stand_in(key: Deployed, measured: StepTables) -> str:
    """Return which kernels stand in for a format whose own were not measured on a GPU; nothing where they were."""
    if not measured.place:
        return ""
    modes = kernels_of(key).modes[measured.place]
    named = ", ".join(f"{name} {mode}" for name, mode in modes.items())
    return f"{key.checkpoint.quantization.scheme} was not measured on {key.gpu.id}; kernels of {named} stand in"


def roofline_timer(key: Deployed, note: str) -> Timing:
    """Return new times from data sheets, and why they are not measured."""
    times, here = _estimated(key, note), _measured_here(key)
    return _timing(times, _calibrated(times, here).steps, here)


def estimated_step_tables(key: Deployed) -> StepTables:
    """Return step times from data sheets and the efficiency of kernels, before any factor."""
    return roofline_tables(workload(key), key.gpu, key.layout, efficiencies_for(key.gpu))


def workload(key: Deployed) -> Workload:
    """Return what one rank of a deployment reads and computes."""
    return workload_of(key.model.architecture, key.checkpoint.quantization, key.gpu, key.layout, key.kv_cache_dtype)


def _calibrated(times: _Times, here: MeasuredSteps | None) -> Rated:
    """Return step times under their factors, with what they are put in order by."""
    key = times.key
    floor = roofline_tables(workload(key), key.gpu, key.layout, FLOOR)
    steps = calibrated(times.tables, floor, _factors(times, here), hides_host=hides_host(key))
    return Rated(steps=steps, estimated=estimated_step_tables(key), floor=floor)


def _factors(times: _Times, here: MeasuredSteps | None) -> Factors:
    factors = factors_of(times.row)
    return factors if here is None else factors.scaled(here)


def _timing(times: _Times, steps: TabledSteps, here: MeasuredSteps | None) -> Timing:
    is_measured = times.basis == MEASURED
    own = Basis(
        name=times.basis,
        is_measured=is_measured,
        source=KERNELS_SOURCE if is_measured else times.note,
        note=times.note,
        overhead_source=SOURCE,
        expected_error_fraction=times.row.expected_error_fraction,
        stated_pace_error_fraction=times.row.pace_error_fraction,
    )
    return Timing(
        steps=steps,
        request_overhead=_factors(times, here).request_overhead,
        basis=own if here is None else _basis_here(here),
    )


def _measured_here(key: Deployed) -> MeasuredSteps | None:
    return steps_of(key.rules.measured, _place(key)) if key.rules.measured else None


def _basis_here(here: MeasuredSteps) -> Basis:
    return Basis(
        name=MEASURED_HERE,
        is_measured=True,
        source=here.source,
        note="",
        overhead_source=here.source,
        expected_error_fraction=here.error_fraction,
    )


def _place(key: Deployed) -> Deployment:
    """Return a deployment as callers measure it."""
    return Deployment(
        model=key.model.id,
        gpu=key.gpu.id,
        layout=key.layout,
        weight_format=key.checkpoint.weight_format,
        kv_cache_dtype=key.kv_cache_dtype,
    )


def hides_host(key: Deployed) -> bool:
    """Return whether the host plans an iteration while kernels of the one before run.

    What a request adds to an iteration of recurrent layers is kernels' time: its state is read and written.

    Source:
        vLLM 0.14 `config/vllm.py` (`async_scheduling` by default); SGLang `--disable-overlap-schedule`; TensorRT-LLM
        `disable_overlap_scheduler`.
    """
    is_recurrent = any(mixer.is_recurrent for mixer in key.model.architecture.mixers)
    return key.rules.steps_planned_ahead > 0 and not is_recurrent


def kernel_class(key: Deployed) -> str:
    """Return which kernels dominate: dense or experts, recurrent or not, the format, and whether experts are dealt out.

    Iterations with prompts launch several times as many kernels for a recurrent layer, outside whole-step graphs.
    Ranks that attend together and hold whole experts wait for the one whose experts were chosen most.
    """
    architecture = key.model.architecture
    has_experts, recurrent = architecture.has_experts, any(mixer.is_recurrent for mixer in architecture.mixers)
    scheme = key.checkpoint.quantization.scheme
    # Blocks of fp8 have kernels of their own; where they were not measured, others stand in, and are as far off.
    stored = "bf16" if scheme == "none" else scheme if scheme == "fp8-block" else scheme.split("-")[0]
    dealt = SPREAD if has_experts and key.layout.expert_parallel and key.layout.data_parallel_size == 1 else ""
    return f"{'experts' if has_experts else 'dense'}{'-recurrent' if recurrent else ''}-{stored}{dealt}"
