"""Step times as tables: built once per model, GPU and layout, then asked millions of times."""

from array import array
from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from service.engine.engines.measured_here import MeasuredSteps
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS, Records
from service.engine.time.steps import RequestOverhead

Floats = NDArray[np.float64]
if TYPE_CHECKING:
    _Doubles = array[float]
else:
    _Doubles = array  # Python 3.11 has no subscript for it

# Below this, weights are streamed for the whole batch anyway; above it, time grows with every token.
SMALL_BATCH_TOKENS = 1024.0
# One process lets requests in, and works on all it has side by side. Pages of GPUStack with warm servers: first tokens
# of 1,000 who begin at once come 1.2 to 2.4 s later than the GPU reads them (SGLang 0.5.4, 0.5.5, vLLM 0.13), those of
# 512 by 1.0 to 1.2 s (vLLM 0.17), the median as much as the last percentile. In vLLM pull request 18566, of 1,000
# to a model of 8B, the mean comes after 9.6 s and the last percentile after 12.7: evenly read, none before 6.5.
LET_IN_S = 0.002

# Nor does a host that plans ahead take longer for each request. Vultr's page of Nemotron 3 Nano on two B200, vLLM 0.16,
# 400 answers of 512 tokens at once: they end after 10.92 s, and first tokens come after 2.61 s in the mean, after 5.22
# at most, so that 511 iterations of 400 requests take 5.70 s with all that kernels and host do.
MOST_HIDDEN_S = 0.000028


class Row(_Doubles):
    """Numbers that nobody changes, hashed by value: a third of the room that a tuple of them takes."""

    __slots__ = ()

    def __new__(cls, values: ArrayLike) -> Self:
        """Keep numbers in a row, those of an array of two axes one row after the other."""
        return cast("Self", super().__new__(cls, "d", np.asarray(values, dtype=np.float64).tobytes()))

    def __hash__(self) -> int:  # type: ignore[override]  # an array has none
        """Return a hash of all of them."""
        return hash(self.tobytes())


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """A function of one variable, linear between rising knots and beyond the last one."""

    knots: tuple[float, ...]
    values: Row

    def at(self, x: float) -> float:
        """Return the value at x; the first value below the first knot."""
        knots, values = self.knots, self.values
        if x <= knots[0]:
            return values[0]
        right = bisect_right(knots, x, 1, len(knots) - 1)
        left = right - 1
        slope = (values[right] - values[left]) / (knots[right] - knots[left])
        return values[left] + slope * (x - knots[left])


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """A function of two variables, bilinear between rising knots and beyond the last ones."""

    rows: tuple[float, ...]
    columns: tuple[float, ...]
    values: Row  # of the first row, of the second, and so on

    @property
    def grid(self) -> Floats:
        """Return the values, an array of rows x columns."""
        return np.array(self.values).reshape(len(self.rows), len(self.columns))

    def at(self, row: float, column: float) -> float:
        """Return the value at (row, column), held constant below the first knots."""
        rows, columns = self.rows, self.columns
        below = bisect_right(rows, row, 1, len(rows) - 1)
        right = bisect_right(columns, column, 1, len(columns) - 1)
        above, left = rows[below - 1], columns[right - 1]
        # Written out, as simulations ask for nothing more often.
        share = (row - above) / (rows[below] - above) if row > above else 0.0
        part = (column - left) / (columns[right] - left) if column > left else 0.0
        values, width = self.values, len(columns)
        lower = below * width + right
        upper = lower - width
        high, low = values[upper - 1], values[lower - 1]
        high += part * (values[upper] - high)
        low += part * (values[lower] - low)
        return high + share * (low - high)


def rising(values: Floats) -> Floats:
    """Return the values with every bump cut along the last axis: less work never takes longer than more of it."""
    return np.minimum.accumulate(values[..., ::-1], axis=-1)[..., ::-1]


def rising_rows(values: Floats) -> Floats:
    """Return the values with every bump cut along rows and columns."""
    return rising(np.minimum.accumulate(values[::-1], axis=0)[::-1])


def as_row(values: Floats) -> tuple[float, ...]:
    """Return an array of one axis as a tuple."""
    return tuple(values.tolist())


def as_rows(values: Floats) -> tuple[tuple[float, ...], ...]:
    """Return an array of two axes as a tuple of its rows."""
    return tuple(map(tuple, values.tolist()))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StepTables:
    """The parts of a step at the knots of this module. [s]."""

    decode: tuple[tuple[float, ...], ...]  # REQUESTS x CONTEXTS: a whole iteration that only decodes
    tokens: tuple[float, ...]  # TOKENS: everything but attention, by tokens of the batch
    attention: tuple[float, ...]  # ATTENDED: attention of one prompt token, by the tokens it attends to
    place: int = 0  # of the kernels they are measured with, among those asked for; 0: the format's own


@dataclass(frozen=True, slots=True, kw_only=True)
class Factors:
    """What step times are multiplied with, and what is added to them."""

    decode_factor: float
    small_prefill_factor: float  # up to SMALL_BATCH_TOKENS in a batch
    large_prefill_factor: float  # what more tokens add
    step_overhead_s: float  # host work that an iteration waits for [s]
    sequence_overhead_s: float  # the same for each request; hidden, and less, where the host plans ahead [s]
    mixed_overhead_s: float  # more in iterations with prompts: no whole-step CUDA graph [s]
    request_overhead_s: float  # HTTP, whatever the prompt [s]
    tokenizer_s_per_token: float  # of a prompt [s]
    layer_launch_s: float = 0.0  # until the kernels of one layer are launched, where no whole-step graph is [s]

    @property
    def request_overhead(self) -> RequestOverhead:
        """Return what a request waits outside iterations."""
        return RequestOverhead(
            base_s=self.request_overhead_s, s_per_prompt_token=self.tokenizer_s_per_token, let_in_s=LET_IN_S
        )

    def scaled(self, measured: MeasuredSteps) -> "Factors":
        """Return the same, times what a benchmark of the very deployment measured of prompts and of decoding."""
        prefill, decode = measured.prefill_factor, measured.decode_factor
        return Factors(
            decode_factor=decode * self.decode_factor,
            small_prefill_factor=prefill * self.small_prefill_factor,
            large_prefill_factor=prefill * self.large_prefill_factor,
            step_overhead_s=decode * self.step_overhead_s,
            sequence_overhead_s=decode * self.sequence_overhead_s,
            mixed_overhead_s=prefill * self.mixed_overhead_s,
            request_overhead_s=prefill * self.request_overhead_s + measured.request_overhead_s,
            tokenizer_s_per_token=prefill * self.tokenizer_s_per_token,
            layer_launch_s=prefill * self.layer_launch_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TabledSteps:
    """Step times as sums of tabled parts and overheads; implements `StepTimer`.

    decode = step_overhead + sequence_overhead x requests + decode(requests, context)
    mixed  = step_overhead + sequence_overhead x requests + mixed_overhead
             + tokens(prefill + requests) + prefill x attention(attended)
             + decode(requests, context) - decode(requests, shortest context) + mixed_sequence_overhead x requests
    """

    decode: Surface
    tokens: Curve
    attention: Curve
    step_overhead_s: float
    sequence_overhead_s: float
    mixed_overhead_s: float
    mixed_sequence_overhead_s: float = 0.0

    def decode_s(self, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that only decodes. [s]."""
        overhead = self.step_overhead_s + self.sequence_overhead_s * requests
        return overhead + self.decode.at(requests, context_tokens)

    def mixed_s(self, prefill_tokens: float, attended_tokens: float, requests: float, context_tokens: float) -> float:
        """Return the seconds of an iteration that reads prompts and decodes. [s]."""
        seconds = self.step_overhead_s + self.mixed_overhead_s + self.tokens.at(prefill_tokens + requests)
        seconds += prefill_tokens * self.attention.at(attended_tokens)
        if requests:
            decode = self.decode.at(requests, context_tokens)
            seconds += (self.sequence_overhead_s + self.mixed_sequence_overhead_s) * requests
            seconds += decode - self.decode.at(requests, 0.0)
            # An iteration with prompts does everything that one without them does.
            seconds = max(seconds, self.step_overhead_s + self.sequence_overhead_s * requests + decode)
        return seconds

    def alone(self) -> "TabledSteps":
        """Return the same of one request: the first row of what decodes, twice, for a row that is alike is bilinear."""
        first = self.decode.values[: len(self.decode.columns)]
        return replace(self, decode=replace(self.decode, rows=self.decode.rows[:2], values=Row((first, first))))

    def write(self, records: Records) -> None:
        """Write tables and constants into an array of one record, as simulations read them."""
        records["requests"], records["contexts"] = self.decode.rows, self.decode.columns
        records["decode_s"] = self.decode.grid
        records["batch_tokens"], records["tokens_s"] = self.tokens.knots, self.tokens.values
        records["attended"], records["attention_s"] = self.attention.knots, self.attention.values
        records["step_overhead_s"], records["mixed_overhead_s"] = self.step_overhead_s, self.mixed_overhead_s
        records["sequence_overhead_s"] = self.sequence_overhead_s
        records["mixed_sequence_overhead_s"] = self.mixed_sequence_overhead_s


def calibrated(
    tables: StepTables,
    floor: StepTables,
    factors: Factors,
    *,
    hides_host: bool,
    chunked_states: float = 0.0,
    untabled_states: float = 0.0,
    layers: float = 0.0,
) -> TabledSteps:
    """Return step times: tables times their factors, never below the physical floor.

    What a request's state takes, whatever its context, is taken out of decoding and added for each request, so that
    iterations with prompts have it too. What the host does for each request is added as well, or hides behind the
    kernels: an iteration takes as long as the longer of both.

    An iteration with prompts runs outside whole-step graphs: its kernels are launched one by one, and run while others
    are launched, so that it takes as long as the longer of both as well: at least what the launch of a layer takes, for
    each layer.

    Args:
        tables: seconds as measured or estimated.
        floor: bytes over bandwidth and FLOP over peak of the same parts.
        factors: what calibration found.
        hides_host: the host plans the next iteration while kernels of this one run; it takes no longer for each
            request than one that was seen.
        chunked_states: what states of requests that decode take more beside prompts, over the time in which they are
            read and written; see `chunked`.
        untabled_states: what states take that tables leave out, over the same; see `states`.
        layers: whose kernels one iteration launches. [count]
    """
    state_s = max(floor.decode[0][0] - floor.tokens[0], 0.0)
    hidden_s, seen_s = min(factors.sequence_overhead_s, MOST_HIDDEN_S), 0.0
    if not hides_host:
        hidden_s, seen_s = 0.0, factors.sequence_overhead_s
    untabled_s = untabled_states * state_s
    # Kernels for one request alone may be slower than those for two: Nemotron 3 Nano on two B200, 3.70 ms beside 2.74.
    kernels = factors.decode_factor * rising_rows(np.array(tables.decode))
    decode = _decode(kernels, floor, untabled_s, state_s, hidden_s)
    measured, small = np.array(tables.tokens), tables.tokens[TOKENS.index(SMALL_BATCH_TOKENS)]
    tokens = factors.small_prefill_factor * np.minimum(measured, small)
    tokens += factors.large_prefill_factor * np.maximum(measured - small, 0.0)
    tokens = np.maximum(tokens, layers * factors.layer_launch_s)
    attention = factors.large_prefill_factor * np.array(tables.attention)
    return TabledSteps(
        decode=Surface(rows=REQUESTS, columns=CONTEXTS, values=Row(rising_rows(decode))),
        tokens=Curve(knots=TOKENS, values=Row(rising(np.maximum(tokens, floor.tokens)))),
        attention=Curve(knots=ATTENDED, values=Row(rising(np.maximum(attention, floor.attention)))),
        step_overhead_s=factors.step_overhead_s,
        sequence_overhead_s=seen_s + max(untabled_s, state_s),
        mixed_overhead_s=factors.mixed_overhead_s,
        mixed_sequence_overhead_s=chunked_states * state_s,
    )


def _decode(kernels: Floats, floor: StepTables, untabled_s: float, state_s: float, hidden_s: float) -> Floats:
    """Return the seconds of decoding, less what each request's state takes, which every iteration adds.

    Attention and matrices run one after the other, and a batch multiplies with no fewer matrices than one request:

        decode >= decode of one request + bytes of all caches and states / bandwidth

    Args:
        kernels: tables times their factor. [s]
        floor: the same by physics. [s]
        untabled_s: what a request's state takes that tables leave out. [s]
        state_s: what it takes by physics. [s]
        hidden_s: what the host does for each request behind kernels. [s]
    """
    requests, taken_s = np.array(REQUESTS)[:, None], max(untabled_s, state_s)
    least = np.array(floor.decode) + requests * (taken_s - state_s)
    matrices = np.array(floor.tokens[: len(REQUESTS)])[:, None]  # of as many tokens: their knots begin alike
    decode: Floats = np.maximum(kernels + requests * untabled_s, least)
    decode = np.maximum(np.maximum(decode, kernels[0][0] + least - matrices), requests * hidden_s)
    return decode - requests * taken_s
