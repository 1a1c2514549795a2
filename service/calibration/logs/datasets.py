"""Lengths of public data sets, for runs whose logs do not state them.

Source:
    github.com/mlcommons/inference b66003e: answers of Llama 2 70B have 294.45 tokens on average
    (language/llama2-70b/README.md:266), and its questions no more than 1,024 (processorca.py:134); they are taken for
    as long as the answers. Llama 3.1 405B: 9,400 tokens read and 680 written (mlcommons.org/2025/04/llm-inference-v5;
    684.68 in language/llama3.1-405b/README.md:272). Llama 3.1 8B: 778 read and at most 128 written
    (mlcommons.org/2025/09/small-llm-inference-5-1). DeepSeek-R1: 800 and 3,880
    (mlcommons.org/2025/09/deepseek-inference-5-1; 3,886.2274 in language/deepseek-r1/README.md:271). Nothing states the
    prompts of Mixtral 8x7B or of gpt-oss-120b.
    github.com/sgl-project/sglang, first version of its page "Production Metrics" (google/gemma-2-9b-it): 2,104 prompts
    and their answers counted by length. It names no data set; their means, 238 and 202 tokens, are those that its
    benchmark prints of ShareGPT, and pull request 1853 prints the same shape of 1,003 prompts.
    ML.ENERGY publishes none: questions of GPQA have a hundred tokens or three, messages to LM Arena some tens to some
    hundreds. Its runs count where that decides nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from service.calibration.logs.rows import Row, UnstatedError
from service.engine import EmpiricalLength, FixedLength, Length, LogNormalLength

# Standard deviation over mean of a log-normal length; or multiples of the mean, each as likely.
Variation = float | tuple[float, ...]
STEPS: Final = 100


def counted(bounds: tuple[int, ...], requests: tuple[int, ...]) -> tuple[float, ...]:
    """Return the lengths of a histogram as multiples of their mean, STEPS of them as likely.

    Within a bucket from a to b, of which a share s is shorter, a length is a (b / a)**s.
    `bounds` are the ends of buckets in tokens, `requests` how many are no longer than each (none than the first).
    """
    shares = [(step + 0.5) / STEPS for step in range(STEPS)]
    logs = np.interp(shares, np.array(requests) / requests[-1], np.log(bounds))
    lengths = np.exp(logs)
    return tuple(float(length) for length in lengths / lengths.mean())


def ranked(shares: tuple[float, ...], multiples: tuple[float, ...]) -> tuple[float, ...]:
    """Return multiples of the mean, STEPS of them as likely, from what shares of all are no longer than.

    Between two shares a length grows evenly. The shortest is what leaves a mean of one.

    >>> shortest, *_, longest = ranked((0.5, 0.9, 1.0), (1.0, 1.4, 1.6))
    >>> round(shortest, 2), round(longest, 2)
    (0.49, 1.59)
    """
    middles = [(step + 0.5) / STEPS for step in range(STEPS)]
    above = np.interp([each for each in middles if each > shares[0]], shares, multiples)
    below = [each for each in middles if each <= shares[0]]
    shortest = 2 * (STEPS - above.sum()) / len(below) - multiples[0]
    lengths = [*np.interp(below, (0.0, shares[0]), (shortest, multiples[0])), *above]
    return tuple(float(length) for length in lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """How long a data set's prompts are, and how answers spread."""

    input_tokens: int | None  # mean; None: not published
    input_variation: Variation  # 0: alike
    output_variation: Variation
    unknown_tokens: int = 0  # by how much the mean prompt may be off, either way


# Answers of ShareGPT end where ChatGPT stopped. On newer pages of GPUStack (342 tokens read, 281 written) latencies at
# one request a second have p50 : p95 : p99 = 0.89 : 2.6 : 3.0 of their mean, as a triangle has that falls from nothing
# to three times the mean.
FALLING: Final = tuple(3 * (1 - (1 - (step + 0.5) / STEPS) ** 0.5) for step in range(STEPS))
# Of the conversations that the benchmarks of vLLM and SGLang keep, 238 tokens read and 202 written, few are average.
# vLLM's keeps none of fewer than four tokens, read or written (0.11 `benchmarks/datasets.py`, `is_valid_sequence`).
KEPT_BOUNDS: Final = (4, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000)
KEPT_PROMPTS: Final = counted(KEPT_BOUNDS, (0, 22, 191, 511, 825, 997, 1_182, 1_748, 2_102, 2_104))
KEPT_ANSWERS: Final = counted(KEPT_BOUNDS, (0, 49, 202, 448, 814, 979, 1_266, 1_883, 2_095, 2_104))
KEPT_TOKENS: Final = range(190, 210)  # mean answers of such a sample, by how many are drawn and by tokenizer
DRAWN_TOKENS: Final = 100  # a benchmark draws lengths around a multiple of it

# Of Llama 3.1 405B some answers are short and most are alike: (end to end - first token) / pace at p50, p90, p95, p99
# over the mean answer, the median of 25 results of v5.1 and v6.0 whose pace is even (p99 / p50 below 1.5); 0.02 apart.
ALIKE_BUT_SHORT: Final = ranked((0.5, 0.9, 0.95, 0.99, 1.0), (1.06, 1.45, 1.56, 1.79, 1.85))
# Of Llama 3.1 70B to OpenOrca, the same of four results of v5.1.
FEW_LONG: Final = ranked((0.5, 0.9, 0.95, 0.99, 1.0), (0.93, 1.67, 2.06, 3.57, 3.95))
# Spread of answers: exp(sigma) from p90 / p50 of the published end-to-end latencies at an even pace. That of the
# prompts of Llama 3.1 405B is of first tokens, which wait for little else: p50 : p90 : p99 = 988 : 1,635 : 2,511 ms
# (v5.1, eight B200, Interactive) are those of 0.4.
DATA_SETS: Final[Mapping[str, DataSet]] = {
    "llama3_1-70b": DataSet(input_tokens=294, input_variation=0.7, output_variation=FEW_LONG),
    "(openorca)": DataSet(input_tokens=294, input_variation=0.7, output_variation=0.65),
    "llama3_1-405b": DataSet(input_tokens=9_400, input_variation=0.4, output_variation=ALIKE_BUT_SHORT),
    "llama3_1-8b": DataSet(input_tokens=778, input_variation=0.4, output_variation=0.09),
    "deepseek-r1": DataSet(input_tokens=800, input_variation=0.7, output_variation=1.4),
    "mixtral-8x7b": DataSet(input_tokens=None, input_variation=0.7, output_variation=0.79),
    "gpt-oss-120b": DataSet(input_tokens=None, input_variation=0.5, output_variation=0.21),
    "lm-arena-chat": DataSet(input_tokens=275, input_variation=1.0, output_variation=0.8, unknown_tokens=225),
    "gpqa": DataSet(input_tokens=200, input_variation=0.5, output_variation=0.8, unknown_tokens=100),
    "sharegpt": DataSet(input_tokens=None, input_variation=1.2, output_variation=FALLING),
}
KEPT: Final = DataSet(input_tokens=None, input_variation=KEPT_PROMPTS, output_variation=KEPT_ANSWERS)


def data_set(row: Row) -> DataSet | None:
    """Return what is known of a run's data set by its source's words; None for drawn or unknown lengths.

    A comment in a script is no data set: GPUStack's pages measure ShareGPT unless a comment says that lengths were
    drawn. Conversations have no mean in whole hundreds of tokens: a page's example of 1,000 and 2,000 is drawn too.
    """
    words = str(row.get("dataset")).lower()
    if words.startswith("#") and "random" not in words:
        words = "sharegpt"
    if "sharegpt" in words and not any(float(row.get(side) or 1) % DRAWN_TOKENS for side in ("isl", "osl")):
        return None
    if "sharegpt" in words and int(float(row.get("osl") or 0)) in KEPT_TOKENS:
        return KEPT
    return next((known for part, known in DATA_SETS.items() if part in words), None)


def mean_input_tokens(stated: float | None, known: DataSet | None, name: str) -> float:
    """Return the mean prompt: as stated, else as published.

    Raises:
        UnstatedError: nobody says.
    """
    if stated is not None:
        return float(stated)
    if known is None or known.input_tokens is None:
        raise UnstatedError(f"nobody publishes how long the prompts of {name} are")
    return float(known.input_tokens)


def spread(mean_tokens: float, variation: Variation) -> Length:
    """Return lengths around a mean."""
    if isinstance(variation, tuple):
        return EmpiricalLength(tokens=tuple(max(round(mean_tokens * multiple), 1) for multiple in variation))
    if not variation:
        return FixedLength(tokens=max(round(mean_tokens), 1))
    return LogNormalLength(mean_tokens=max(mean_tokens, 1.0), variation=variation)
