"""An answer that is told of another load is the one that is computed, byte for byte."""

import random
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.other_levers import size_beside
from service.questions.asked import Desk
from service.questions.size import SIZE, SizeAnswer, SizeBody

MODELS = ("llama-3.1-8b", "gpt-oss-20b", "gemma-3-27b", "deepseek-v3", "falcon-mamba-7b-instruct", "Qwen3 30B A3B")
GPUS = ("h100", "l40s", "mi355x", "b200")


def asked_of(draw: random.Random) -> list[dict[str, Any]]:
    """Return one question of several loads that are near to each other."""
    users, tokens = draw.choice([1, 30, 400]), draw.choice([300, 2_050, 9_000])
    rest: dict[str, Any] = {"model": draw.choice(MODELS), "gpu": draw.choice(GPUS), "latency": "none"}
    more: list[dict[str, Any]] = [
        {},
        {"headroom_fraction": 0.3},
        {"spare_replicas": 1},
        {"engine": "sglang"},
        {"max_num_seqs": 64},
    ]
    near = range(-6, 7, 2)
    loads = [(max(users + draw.choice(near), 1), tokens + draw.choice(near)) for _ in range(5)]
    return [
        {**rest, **draw.choice(more), "concurrent_requests": number, "input_tokens": length,
         "output_tokens": 100}
        for number, length in loads
    ]  # fmt: skip


def test_answers_told_of_other_loads_are_those_that_are_computed(catalog: Snapshot) -> None:
    desk, draw, results = Desk(timers=None), random.Random(14), []
    for _ in range(16):
        for fields in asked_of(draw):
            asked = SizeBody(**fields)
            sources = desk.sources(catalog)
            computed = SizeAnswer(size_beside(asked.looked_up(sources), ()), catalog.revision)
            whole = computed.with_readings([*sources.readings, *asked.readings])
            answered = desk.answer(SIZE, asked, catalog)
            assert answered.json == whole.json
            assert answered.result == whole.result
            results.append(answered.result)
    of_their_own = {id(result.kv_cache) for result in results}  # what is told shares it with what was computed
    assert len(of_their_own) < 0.8 * len(results)


def test_a_load_that_is_too_long_is_refused_though_its_neighbour_was_answered(catalog: Snapshot) -> None:
    fields: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 1, "output_tokens": 100,
                              "latency": "none", "max_model_len": 1_000}  # fmt: skip
    desk = Desk(timers=None)
    assert desk.answer(SIZE, SizeBody(**fields, input_tokens=900), catalog).is_feasible
    with pytest.raises(Exception, match="exceeds the 1000 tokens of max_model_len"):
        desk.answer(SIZE, SizeBody(**fields, input_tokens=905), catalog)
