"""Questions that nobody asked before, of a seed: what the benchmarks ask, over HTTP, of any release."""

import random
from collections.abc import Iterator
from typing import Any, Final

MODELS: Final = (
    "llama-3.1-8b",
    "llama-3.3-70b",
    "qwen3-32b",
    "gpt-oss-120b",
    "qwen3-30b-a3b",
    "gemma-3-27b",
    "deepseek-v3",
    "gpt-oss-20b",
)
GPUS: Final = ("h100", "h200", "b200", "a100-sxm-80gb", "l40s", "l4", "mi300x", "rtx-4090")

Question = dict[str, Any]


def load(draw: random.Random, longest: float) -> Question:
    """Return users or arrivals, lengths, and one limit at least."""
    question: Question = {
        "input_tokens": int(2 ** draw.uniform(5, longest)),
        "output_tokens": int(2 ** draw.uniform(3, 11)),
    }
    if draw.random() < 0.5:
        question["concurrent_requests"] = int(2 ** draw.uniform(0, 10))
    else:
        question["request_rate_per_s"] = round(2 ** draw.uniform(-4, 6), 4)
    limits = {"ttft_s": draw.choice([None, 0.3, 0.5, 1, 2, 5]), "tpot_s": draw.choice([None, 0.02, 0.03, 0.05, 0.1])}
    if limits["ttft_s"] is None and limits["tpot_s"] is None:
        limits["ttft_s"] = 1
    return question | {name: limit for name, limit in limits.items() if limit is not None}


def size_questions(seed: int, *, longest: float = 13.0) -> Iterator[Question]:
    """Yield questions to `/size`; prompts are of at most 2^longest tokens."""
    draw = random.Random(seed)
    while True:
        yield {"model": draw.choice(MODELS), "gpu": draw.choice(GPUS), **load(draw, longest)}


def capacity_questions(seed: int) -> Iterator[Question]:
    """Yield questions to `/capacity`, whose answers have a table and a curve."""
    draw = random.Random(seed)
    while True:
        asked = load(draw, 12.0)
        if draw.random() < 0.5:
            asked = {name: asked[name] for name in asked if name.endswith("_s") and not name.startswith("request")}
        yield {
            "model": draw.choice(MODELS),
            "gpu": draw.choice(GPUS),
            "gpu_count": draw.choice([1, 2, 4, 8, 16]),
            **asked,
        }


def recommend_questions(seed: int) -> Iterator[Question]:
    """Yield questions to `/recommend` over the whole catalog, with a rate and limits."""
    draw = random.Random(seed)
    while True:
        yield {
            "model": draw.choice(MODELS),
            "request_rate_per_s": round(2 ** draw.uniform(-1, 5), 4),
            "input_tokens": int(2 ** draw.uniform(7, 13)),
            "output_tokens": int(2 ** draw.uniform(5, 10)),
            "ttft_s": draw.choice([0.5, 1, 2]),
            "tpot_s": draw.choice([0.03, 0.05, 0.1]),
            "objective": draw.choice(["cost", "gpus", "latency"]),
        }
