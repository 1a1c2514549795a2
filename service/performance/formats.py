"""One model in several weight formats: their step times differ as bytes and multiplications do.

    time(format) = time(own format) x roofline(format) / roofline(own format)

where nobody measured the format's kernels; and whoever measured them, at each knot

    time(format) >= time(other)   where the roofline of the format is no lower than that of the other
    time(format) <= time(other)   where it is lower

A format that nobody measured moves with the one that its times are in proportion to, where that one is put in order.
What a host does between kernels is the same work in every format.

Source:
    S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance model (2009).
    E. Frantar et al., MARLIN: mixed-precision auto-regressive parallel inference on large language models (2024),
    section 5: weights of 4 bits are multiplied in 16, up to 4 times as fast in small batches and not in large ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.engine.derived import derived
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.checkpoints import own_checkpoint, standard_checkpoint
from service.engine.inputs import Gpu, WeightFormat
from service.engine.time.records import REQUESTS
from service.performance.tables import Floats, Row, StepTables, TabledSteps, rising, rising_rows

Flags = NDArray[np.bool_] | np.bool_

PLAIN: Final[tuple[WeightFormat, ...]] = (
    "bf16",
    "fp16",
    "fp8",
)  # formats whose kernels were measured nearly everywhere
ALIKE: Final = 0.9999  # of the other's seconds: the same but for rounding


def in_proportion(known: StepTables, estimated: StepTables, estimated_known: StepTables) -> StepTables:
    """Return the times of a format nobody measured, from those of another and the roofline's of both.

    >>> from service.engine.time.records import ATTENDED, CONTEXTS, TOKENS
    >>> def flat(seconds):
    ...     rows = ((seconds,) * len(CONTEXTS),) * len(REQUESTS)
    ...     return StepTables(decode=rows, tokens=(seconds,) * len(TOKENS), attention=(1e-6,) * len(ATTENDED))
    >>> half = in_proportion(flat(0.03), flat(0.01), flat(0.02))
    >>> round(half.decode[0][0], 4), round(half.tokens[0], 4), half.attention[0]
    (0.015, 0.015, 1e-06)
    """

    def scaled(times: Sequence[float], wanted: Sequence[float], beside: Sequence[float]) -> tuple[float, ...]:
        return tuple(time * one / other for time, one, other in zip(times, wanted, beside, strict=True))

    return StepTables(
        decode=tuple(
            scaled(*rows) for rows in zip(known.decode, estimated.decode, estimated_known.decode, strict=True)
        ),
        tokens=scaled(known.tokens, estimated.tokens, estimated_known.tokens),
        attention=known.attention,
    )


def compared(gpu: Gpu) -> tuple[WeightFormat, ...]:
    """Return the formats that others are put in order beside: those that a GPU's own tensor cores multiply."""
    return (*PLAIN, "nvfp4") if "fp4" in gpu.peak_flop_per_s else PLAIN


@derived(8)
def before(model: ModelFacts, formats: tuple[WeightFormat, ...]) -> tuple[Checkpoint, ...]:
    """Return the checkpoints that times of a format are put in order beside: the published one, then `compared`."""
    known: list[Checkpoint] = []
    for each in (own_checkpoint(model), *(_stored(model, name) for name in formats)):
        if all(each.quantization.scheme != other.quantization.scheme for other in known):
            known.append(each)
    return tuple(known)


def _stored(model: ModelFacts, weight_format: WeightFormat) -> Checkpoint:
    published = (each for each in model.checkpoints if each.weight_format == weight_format)
    return next(published, standard_checkpoint(model, weight_format))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """Step times, the roofline's of the same, and the floor of physics below both."""

    steps: TabledSteps
    estimated: StepTables
    floor: StepTables


def in_order(own: Rated, other: Rated) -> Rated:
    """Return the times of a format, nowhere on the wrong side of another's of the same model and layout.

    What an iteration takes is kept where it is on the right side; host work is the other's, and the tables the rest.
    """
    steps, beside = own.steps, other.steps
    hosts_s = steps.step_overhead_s - beside.step_overhead_s
    mixed_s = hosts_s + steps.mixed_overhead_s - beside.mixed_overhead_s
    slower = np.array(own.estimated.tokens) >= ALIKE * np.array(other.estimated.tokens)
    others = np.array(beside.tokens.values)
    tokens = np.maximum(_bound(np.array(steps.tokens.values) + mixed_s, others, slower), own.floor.tokens)
    lowest_tokens = np.where(slower, others, 0.0)
    # Physics puts a batch's iterations behind those of the other.
    is_slower = np.array([one[0] for one in own.estimated.decode])
    is_slower = (is_slower >= ALIKE * np.array([one[0] for one in other.estimated.decode]))[:, None]
    lowest = np.where(is_slower, beside.decode.grid, 0.0)
    decode = _decode(own, other, is_slower, hosts_s)
    attention = _bound(np.array(steps.attention.values), np.array(beside.attention.values), slower[-1])
    return replace(
        own,
        steps=replace(
            beside,
            decode=replace(beside.decode, values=Row(_raised(rising_rows(decode), lowest))),
            tokens=replace(beside.tokens, values=Row(_raised(rising(tokens), lowest_tokens))),
            attention=replace(beside.attention, values=Row(rising(attention))),
        ),
    )


def moved(own: Rated, known: Rated, ordered: Rated) -> Rated:
    """Return the times of a format in proportion to another, as many times as long as that one became in order.

    Args:
        own: times of the format under its factors.
        known: the same of the other.
        ordered: of the other, in order beside those that are better known.
    """
    was, now, steps = known.steps, ordered.steps, own.steps
    decode = _as_many_times(steps.decode.grid, was.decode.grid, now.decode.grid)
    tokens = _as_many_times(np.array(steps.tokens.values), was.tokens.values, now.tokens.values)
    return replace(
        own,
        steps=replace(
            steps,
            decode=replace(steps.decode, values=Row(rising_rows(decode))),
            tokens=replace(steps.tokens, values=Row(rising(tokens))),
        ),
    )


def _as_many_times(values: Floats, was: ArrayLike, now: ArrayLike) -> Floats:
    before = np.array(was, dtype=np.float64)
    return values * np.divide(now, before, out=np.ones_like(before), where=before > 0)


def _raised(values: Floats, lowest: Floats) -> Floats:
    """Return what rises still where it is raised to the lowest that it may be."""
    raised = np.maximum(np.maximum(values, lowest), 0.0)
    for axis in range(raised.ndim):
        raised = np.maximum.accumulate(raised, axis=axis)
    return raised


def _decode(own: Rated, other: Rated, is_slower: Flags, hosts_s: float) -> Floats:
    """Return the seconds of iterations: of the shortest context, and what longer ones add, each in order.

    Args:
        own: times of the format.
        other: times of the other format.
        is_slower: where physics puts the format behind the other, by requests.
        hosts_s: host work of the format, less that of the other, which the tables take instead.
    """
    requests = np.array(REQUESTS)[:, None]
    hosts = hosts_s + requests * (own.steps.sequence_overhead_s - other.steps.sequence_overhead_s)
    ours, others = own.steps.decode.grid, other.steps.decode.grid
    state_s = requests * max(own.floor.decode[0][0] - own.floor.tokens[0], 0.0)  # steps add it for each request
    shortest = _bound(ours[:, :1] + hosts, others[:, :1], is_slower)
    longer = _bound(ours - ours[:, :1], others - others[:, :1], is_slower)
    return np.maximum(shortest + longer, np.array(own.floor.decode) - state_s)


def _bound(seconds: Floats, others: Floats, is_slower: Flags) -> Floats:
    """Return the seconds, on the side of the other's where physics puts them."""
    return np.where(is_slower, np.maximum(seconds, others), np.minimum(seconds, others))
