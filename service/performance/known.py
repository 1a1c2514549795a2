"""What is known of a deployment's step times before its factors: its own kernels, those beside it, the roofline."""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.derived import derived
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Gpu, Layout
from service.engine.kept import Kept
from service.engine.time.steps import Deployed
from service.performance.between import between, neighbours, note_of
from service.performance.estimated import (
    Estimates,
    estimates_of,
    kernels_over_sound_link,
    note_of_kernels,
    note_of_link,
)
from service.performance.exchanged import exchanged
from service.performance.fitted import SPREAD, Row, generation_of, layer_class, row_for
from service.performance.formats import before, compared, in_proportion
from service.performance.kernel_tables import KernelTables, NotMeasuredError
from service.performance.kernels import kernels_of
from service.performance.quantization_modes import PARTS, stored_as, stores_experts_apart
from service.performance.siblings import CARRIED, CARRIED_ERROR, carried_over, sibling_of
from service.performance.standins import CACHE_ERROR, STAND_IN, STAND_IN_ERROR, WHOLE_CACHE, stand_ins
from service.performance.tables import StepTables

MEASURED: Final = "measured-kernels"
ROOFLINE: Final = "roofline"
UNLIKE: Final = "formats are compared on one basis, and no kernels of the published {known} were measured"
PROPORTION: Final = "times of {known} on this layout, as the bytes and multiplications of {own} are to its own"
MOST_TIMES: Final = 1024  # about 5 kB each
# Nine in ten of 22 published runs over pipeline stages (MLPerf, CloudRift) are within this; few classes saw any.
STAGED_ERROR: Final = 0.13


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Times of a deployment before its factors, and the row that has these."""

    key: Deployed
    tables: StepTables
    row: Row
    basis: str
    note: str
    is_carried: bool = False  # from another GPU of the generation, or from another model
    is_stand_in: bool = False  # from another model, or with another cache
    is_in_proportion: bool = False  # to times of the published format, whose constants these have too

    @property
    def knowledge(self) -> float:
        """Return how much is known of the very class of measured kernels; 0 of anything else, stand-ins too."""
        is_own = self.basis == MEASURED and not self.is_stand_in
        return self.row.knowledge(kernel_class(self.key)) if is_own else 0.0


class Knowledge:
    """What is known of step times before their factors, kept: each format is looked at beside several others."""

    def __init__(self, tables: KernelTables) -> None:
        """Start with nothing known but where measured kernels are found."""
        self.tables = tables
        self._nearest: Kept[Times] = Kept(MOST_TIMES)
        self._estimates: Kept[Estimates] = Kept(MOST_TIMES)

    def nearest(self, key: Deployed) -> Times:
        """Return what is known of a format, or of the one that the model is published in."""
        return self._nearest.get_or(key.key, lambda: _carried(key, self) or _nearest(key, self))

    def of_kernels(self, key: Deployed) -> Times | None:
        """Return times of measured kernels: the format's own, a sibling GPU's or a stand-in's; None without any."""
        times = _carried(key, self) or _own(key, self)
        return times if times.basis == MEASURED and not times.is_in_proportion else None

    def measured(self, key: Deployed) -> StepTables:
        """Return the times of measured kernels.

        Raises:
            NotMeasuredError: there are none.
        """
        return kernels_over_sound_link(key, self.tables, lambda other: self.estimates(other).estimated)

    def estimates(self, key: Deployed) -> Estimates:
        """Return step times by the roofline, which what keeps their caches leaves as they are."""
        layout = key.layout
        if layout.decode_context_parallel_size > 1:
            layout = replace(layout, decode_context_parallel_size=1)
        asked = (key.model.key, key.checkpoint.key, key.gpu, layout, key.kv_cache_dtype, key.rules)
        return self._estimates.get_or(asked, lambda: estimates_of(key))

    def estimated(self, key: Deployed, note: str) -> Times:
        """Return times from data sheets, with why they are not measured."""
        note = "; ".join(filter(None, (note, note_of_kernels(key))))
        return _times(key, self.estimates(key).estimated, ROOFLINE, note)


def _carried(key: Deployed, known: Knowledge) -> Times | None:
    """Return the times of a sibling GPU in proportion; None where there is none, or nobody measured that one either."""
    sibling = sibling_of(key.gpu)
    if sibling is None:
        return None
    there = replace(key, gpu=sibling)
    times, estimated_there = known.nearest(there), known.estimates(there).estimated
    if times.tables is estimated_there:
        return None
    note = CARRIED.format(gpu=key.gpu.id, sibling=sibling.id)
    return replace(
        times,
        key=key,
        tables=carried_over(times.tables, known.estimates(key).estimated, estimated_there),
        row=times.row.less_sure(CARRIED_ERROR),
        note="; ".join(filter(None, (note, times.note))),
        is_carried=True,
    )


def _own(key: Deployed, known: Knowledge) -> Times:
    """Return what is known of the very format."""
    try:
        measured = known.measured(key)
        return _times(key, measured, MEASURED, _stand_in(key, measured))
    except NotMeasuredError as refusal:
        found = _between(key, known) or _of_other_cache(key, known, str(refusal)) or _stood_in(key, known, str(refusal))
        return found or known.estimated(key, str(refusal))


def _between(key: Deployed, known: Knowledge) -> Times | None:
    """Return times between those of fewer and of more copies of the attention; None where either was not measured."""
    pair = neighbours(key.layout)
    if pair is None or key.gpu.measured_as is None:
        return None
    try:
        fewer, more = ((layout, known.measured(replace(key, layout=layout))) for layout in pair)
        measured = between(key, fewer, more)
    except NotMeasuredError:
        return None
    stand_in = _stand_in(key, measured)
    return _times(key, measured, MEASURED, "; ".join(filter(None, (note_of(key.layout, *pair), stand_in))))


def _of_other_cache(key: Deployed, known: Knowledge, refusal: str) -> Times | None:
    """Return the times with a cache in 16 bits, in proportion; None where it is, or nobody measured that either."""
    if key.kv_cache_dtype == WHOLE_CACHE or key.gpu.measured_as is None:
        return None
    there = replace(key, kv_cache_dtype=WHOLE_CACHE)
    times = _of_own_format(there, known)
    note = STAND_IN.format(refusal=refusal, told=f"a cache in {WHOLE_CACHE}")
    return None if times is None else _in_place(key, there, times, known, note, CACHE_ERROR)


def _stood_in(key: Deployed, known: Knowledge, refusal: str) -> Times | None:
    """Return the times of a model like this one, in proportion; None where its format was not measured there either."""
    if key.gpu.measured_as is None:
        return None
    for stand_in in stand_ins(key.model):
        there = replace(key, model=stand_in.model, layout=_as_dealt(key.layout))
        times = _of_own_format(there, known)
        if times is not None:
            note = STAND_IN.format(refusal=refusal, told=stand_in.told)
            return _in_place(key, there, times, known, note, STAND_IN_ERROR)
    return None


def _in_place(key: Deployed, there: Deployed, times: Times, known: Knowledge, note: str, error: float) -> Times:
    """Return the times of another deployment in the place of one, in proportion."""
    return replace(
        times,
        key=key,
        tables=carried_over(times.tables, known.estimates(key).estimated, known.estimates(there).estimated),
        row=times.row.less_sure(error),
        note="; ".join(filter(None, (note, times.note))),
        is_carried=True,
        is_stand_in=True,
    )


def _as_dealt(layout: Layout) -> Layout:
    """Return a layout whose ranks attend together with its experts cut, as those of other sizes tell them.

    How unevenly whole experts are chosen is a model's own. Published pairs of one setup carry 0.94 to 1.32 times as
    much dealt out as cut (GPUStack performance lab: GLM-4.5-Air and GLM-4.6-FP8 on A100, H100 and H200); tables of
    experts dealt out under a skew of others' would have it 0.58 to 0.91.
    """
    return layout if layout.data_parallel_size > 1 else replace(layout, expert_parallel=False)


def _of_own_format(key: Deployed, known: Knowledge) -> Times | None:
    """Return times of kernels that read weights as they are stored; None where those of another format stand in."""
    try:
        times = _times(key, known.measured(key), MEASURED, "")
    except NotMeasuredError:
        between_copies = _between(key, known)
        if between_copies is None:
            return None
        times = between_copies
    return None if times.tables.place else times


def _times(key: Deployed, tables: StepTables, basis: str, note: str) -> Times:
    row = _row(key, basis)
    if key.layout.pipeline_parallel_size > 1:
        row = row.less_sure(STAGED_ERROR)
    return Times(key=key, tables=tables, row=row, basis=basis, note=note)


def _row(key: Deployed, basis: str) -> Row:
    row = _row_on(key.gpu, basis, key.rules.engine, key.rules.rules_version, kernel_class(key))
    return row if key.layout.all2all_backend is None else exchanged(row)


@derived(256)
def _row_on(gpu: Gpu, basis: str, engine: str, rules_version: str, kernels: str) -> Row:
    return row_for(basis, engine, rules_version, generation_of(gpu), kernels)


def _nearest(key: Deployed, knowledge: Knowledge) -> Times:
    """Return what is known of a format, or of the one that the model is published in where that is better known.

    A format's own kernels go with the constants of the published one where its class was not fitted: what a host does,
    and how busy kernels keep a GPU, goes with the model and its layout. What nobody fitted is timed on the basis of
    the published format, in proportion where it has no kernels that formats are compared by.
    """
    own, published = _own(key, knowledge), replace(key, checkpoint=own_checkpoint(key.model))
    if not has_other_weights(key, published) or own.knowledge:
        return own
    known = knowledge.nearest(published)
    if known.basis == ROOFLINE or (known.is_stand_in and own.basis == ROOFLINE):
        note = UNLIKE.format(known=published.checkpoint.weight_format)
        return own if own.basis == ROOFLINE else knowledge.estimated(key, note)
    if own.basis == MEASURED and not own.tables.place and key.checkpoint.weight_format in compared(key.gpu):
        return replace(own, row=_as_unsure(known.row, own.row))
    note = PROPORTION.format(known=published.checkpoint.weight_format, own=key.checkpoint.weight_format)
    return replace(
        own,
        tables=in_proportion(
            known.tables, knowledge.estimates(key).estimated, knowledge.estimates(published).estimated
        ),
        row=_as_unsure(known.row, own.row),
        basis=ROOFLINE,
        note="; ".join(filter(None, (own.note, note))),
        is_in_proportion=True,
    )


def _as_unsure(known: Row, own: Row) -> Row:
    """Return a row's constants, with the larger expected errors of it and of the one in whose place it stands."""
    row = max(known, own, key=lambda row: row.expected_error_fraction)
    errors = {"expected_error_fraction": row.expected_error_fraction, "pace_error_fraction": row.pace_error_fraction}
    return known.model_copy(update=errors)


def has_other_weights(key: Deployed, other: Deployed) -> bool:
    """Return whether two deployments' weights are stored unlike."""
    return key.checkpoint.quantization.scheme != other.checkpoint.quantization.scheme


def better_known(times: Times, known: Knowledge) -> list[Times]:
    """Return the formats that are better known, the best last; of those known alike, the ones that come first."""
    key, better = times.key, []
    formats = before(key.model, compared(key.gpu))
    schemes = [each.quantization.scheme for each in formats]
    scheme = key.checkpoint.quantization.scheme
    own = times.knowledge, -(schemes.index(scheme) if scheme in schemes else len(schemes))
    for place, checkpoint in enumerate(formats):
        in_format = replace(key, checkpoint=checkpoint)
        # What nobody fitted needs no tables to be known for less.
        if schemes[place] != scheme and (_row(in_format, MEASURED).knowledge(kernel_class(in_format)), -place) > own:
            other = known.nearest(in_format)
            if (other.knowledge, -place) > own:
                better.append((other.knowledge, -place, other))
    return [other for *_, other in sorted(better, key=lambda each: each[:2])]


def _stand_in(key: Deployed, measured: StepTables) -> str:
    """Return which kernels stand in for the engine's, or for a format's on a GPU; nothing where they were measured."""
    kernels, own = kernels_of(key), key.rules.engine
    engine = "" if kernels.engine == own else f"the kernels that {own} runs here were measured with {kernels.engine}"
    unmeasured = ""
    if measured.place:
        named = ", ".join(f"{PARTS[name]} in {mode}" for name, mode in kernels.modes[measured.place].items())
        unmeasured = f"{stored_as(key.checkpoint)} was not measured on {key.gpu.id}; those of {named} stand in"
    return "; ".join(filter(None, (engine, note_of_link(key), unmeasured)))


def kernel_class(key: Deployed) -> str:
    """Return which kernels dominate: dense or experts, recurrent, sparse or neither, the format, experts dealt out.

    Iterations with prompts launch several times as many kernels for a recurrent layer, outside whole-step graphs; those
    of delta nets and of Mamba have nothing in common.
    Sparse attention scores every token before it picks some, in kernels of its own.
    Ranks that attend together and hold whole experts wait for the one whose experts were chosen most: so long as was
    fitted on experts stored as the rest is, not apart from it (DeepSeek V4), whose kernels are others.
    """
    scheme = key.checkpoint.quantization.scheme
    has_whole = key.model.architecture.has_experts and not stores_experts_apart(key.checkpoint)
    # Blocks of fp8 have kernels of their own; where they were not measured, others stand in, and are as far off.
    stored = "bf16" if scheme == "none" else scheme if scheme == "fp8-block" else scheme.split("-")[0]
    dealt = SPREAD if has_whole and key.layout.expert_parallel and key.layout.data_parallel_size == 1 else ""
    return f"{layer_class(key.model.architecture)}-{stored}{dealt}"
