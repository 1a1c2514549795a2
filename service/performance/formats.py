"""One model in several weight formats: their step times differ as bytes and multiplications do.

    time(format) = time(own format) x roofline(format) / roofline(own format)

where nobody measured the format's kernels; and whoever measured them, at each knot

    time(format) >= time(other)   where the roofline of the format is no lower than that of the other
    time(format) <= time(other)   where it is lower

What a host does between kernels is the same work in every format.

Source:
    S. Williams, A. Waterman, D. Patterson, Roofline: an insightful visual performance model (2009).
    E. Frantar et al., MARLIN: mixed-precision auto-regressive parallel inference on large language models (2024),
    section 5: weights of 4 bits are multiplied in 16, up to 4 times as fast in small batches and not in large ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Final

from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.checkpoints import STANDARD_CHECKPOINTS, own_checkpoint
from service.engine.inputs import Gpu, WeightFormat
from service.engine.time.records import REQUESTS
from service.performance.tables import StepTables, TabledSteps, rising, rising_rows

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


def before(model: ModelFacts, gpu: Gpu) -> list[Checkpoint]:
    """Return the checkpoints that times of a format are put in order beside: the published one, then `compared`."""
    known: list[Checkpoint] = []
    for each in (own_checkpoint(model), *(_stored(model, name) for name in compared(gpu))):
        if all(each.quantization.scheme != other.quantization.scheme for other in known):
            known.append(each)
    return known


def _stored(model: ModelFacts, weight_format: WeightFormat) -> Checkpoint:
    published = (each for each in model.checkpoints if each.weight_format == weight_format)
    return next(published, STANDARD_CHECKPOINTS[weight_format])


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
    per_request_s = steps.sequence_overhead_s - beside.sequence_overhead_s
    decode = [_decode(own, other, row, hosts_s + requests * per_request_s) for row, requests in enumerate(REQUESTS)]
    slower = [one >= ALIKE * two for one, two in zip(own.estimated.tokens, other.estimated.tokens, strict=True)]
    tokens = [
        max(_bound(one + mixed_s, two, is_slower=is_slower), low)
        for one, two, is_slower, low in zip(
            steps.tokens.values, beside.tokens.values, slower, own.floor.tokens, strict=True
        )
    ]
    lowest_tokens = [two if is_slower else 0.0 for two, is_slower in zip(beside.tokens.values, slower, strict=True)]
    lowest = [
        others if _is_slower(own, other, row) else (0.0,) * len(others)
        for row, others in enumerate(beside.decode.values)
    ]
    attention = map(partial(_bound, is_slower=slower[-1]), steps.attention.values, beside.attention.values)
    return replace(
        own,
        steps=replace(
            beside,
            decode=replace(beside.decode, values=_rising_rows(decode, lowest)),
            tokens=replace(beside.tokens, values=_rising_rows([tokens], [lowest_tokens])[0]),
            attention=replace(beside.attention, values=rising(list(attention))),
        ),
    )


def _is_slower(own: Rated, other: Rated, row: int) -> bool:
    """Return whether physics puts a batch's iterations behind those of the other."""
    return own.estimated.decode[row][0] >= ALIKE * other.estimated.decode[row][0]


def _rising_rows(values: Sequence[Sequence[float]], lowest: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], ...]:
    """Return the values with every bump cut, and raised where a cut goes below the lowest that they may be."""
    raised: list[tuple[float, ...]] = []
    for row, least in zip(rising_rows(values), lowest, strict=True):
        before = raised[-1] if raised else (0.0,) * len(row)
        raised.append(tuple(accumulate(map(max, row, least, before), max)))
    return tuple(raised)


def _decode(own: Rated, other: Rated, row: int, hosts_s: float) -> list[float]:
    """Return the seconds of one batch's iterations: of the shortest context, and what longer ones add, each in order.

    Args:
        own: times of the format.
        other: times of the other format.
        row: of the batch's requests.
        hosts_s: host work of the format, less that of the other, which the tables take instead.
    """
    ours, others = own.steps.decode.values[row], other.steps.decode.values[row]
    is_slower = _is_slower(own, other, row)
    state_s = REQUESTS[row] * max(own.floor.decode[0][0] - own.floor.tokens[0], 0.0)  # steps add it for each request
    shortest = _bound(ours[0] + hosts_s, others[0], is_slower=is_slower)
    return [
        max(shortest + _bound(one - ours[0], two - others[0], is_slower=is_slower), low - state_s)
        for one, two, low in zip(ours, others, own.floor.decode[row], strict=True)
    ]


def _bound(seconds: float, others: float, *, is_slower: bool) -> float:
    """Return the seconds, on the side of the other's where physics puts them."""
    return max(seconds, others) if is_slower else min(seconds, others)
