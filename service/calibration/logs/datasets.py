"""Lengths of public data sets, for runs whose logs do not state them.

Source:
    MLCommons: Llama 2 70B (OpenOrca, at most 1,024 tokens of either kind), Llama 3.1 405B (9,400 tokens read and 680
    written on average; mlcommons.org/2025/04/llm-inference-v5), Llama 3.1 8B (CNN/DailyMail, 778 and 128 at most;
    mlcommons.org/2025/09/small-llm-inference-5-1), DeepSeek-R1 (800 and 3,880;
    mlcommons.org/2025/09/deepseek-inference-5-1).
    ML.ENERGY publishes none. Questions of GPQA have some 200 tokens, before answers of 7,000. Conversations of LM Arena
    are taken for 500: with 200, pace would grow with the batch by 30 % more than any of its 13 models' kernels do.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from service.calibration.logs.rows import UnstatedError
from service.engine.time.lengths import FixedLength, Length, LogNormalLength


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """How long a data set's prompts are, and how answers spread."""

    input_tokens: int | None  # mean; None: not published
    input_variation: float  # standard deviation over mean; 0: alike
    output_variation: float


# Spread of answers: exp(sigma) from p90 / p50 of the published end-to-end latencies at an even pace.
DATA_SETS: Final[Mapping[str, DataSet]] = {
    "(openorca)": DataSet(input_tokens=294, input_variation=0.7, output_variation=0.65),
    "llama3_1-405b": DataSet(input_tokens=9_400, input_variation=0.7, output_variation=0.25),
    "llama3_1-8b": DataSet(input_tokens=778, input_variation=0.4, output_variation=0.09),
    "deepseek-r1": DataSet(input_tokens=800, input_variation=0.7, output_variation=1.4),
    "mixtral-8x7b": DataSet(input_tokens=None, input_variation=0.7, output_variation=0.79),
    "gpt-oss-120b": DataSet(input_tokens=None, input_variation=0.5, output_variation=0.21),
    "lm-arena-chat": DataSet(input_tokens=500, input_variation=1.0, output_variation=0.8),
    "gpqa": DataSet(input_tokens=200, input_variation=0.5, output_variation=0.8),
    "sharegpt": DataSet(input_tokens=None, input_variation=1.2, output_variation=0.9),
}


def data_set(name: str) -> DataSet | None:
    """Return what is known of a data set by a source's words for it; None for drawn or unknown lengths."""
    words = name.lower()
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


def spread(mean_tokens: float, variation: float) -> Length:
    """Return lengths around a mean."""
    if not variation:
        return FixedLength(tokens=max(round(mean_tokens), 1))
    return LogNormalLength(mean_tokens=max(mean_tokens, 1.0), variation=variation)
