"""No more requests run than a step has tokens, where the engine asks for that."""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.answers.size import size
from service.engine.errors import InvalidQuestionError
from service.engine.fleet.batches import settled_batches
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineName
from tests.engine.conftest import Asked, users


def batches(
    catalog: Snapshot, engine: EngineName = "vllm", version: str | None = None, **stated: Any
) -> tuple[int, int, dict[str, str]]:
    model, gpu = catalog.model("llama-3.1-8b"), catalog.gpu("h100")
    tokens, seqs, notes = settled_batches(model, gpu, StatedSettings(**stated), rules_for(engine, version))
    return tokens, seqs, {note.name: note.origin for note in notes}


def test_requests_are_cut_down_to_stated_tokens(catalog: Snapshot) -> None:
    """vLLM 0.33 `arg_utils.py`: `min(max_num_seqs, max_num_batched_tokens)` where nobody states the former."""
    tokens, seqs, origins = batches(catalog, max_num_batched_tokens=256)

    assert (tokens, seqs) == (256, 256)
    assert origins == {"max_num_batched_tokens": "request", "max_num_seqs": "chosen"}


def test_tokens_are_raised_to_stated_requests(catalog: Snapshot) -> None:
    tokens, seqs, origins = batches(catalog, max_num_seqs=16_384)

    assert (tokens, seqs) == (16_384, 16_384)
    assert origins["max_num_batched_tokens"] == "chosen"


def test_more_requests_than_tokens_do_not_start(catalog: Snapshot) -> None:
    """vLLM `SchedulerConfig`: "max_num_batched_tokens (512) must be greater than or equal to max_num_seqs (1024)"."""
    with pytest.raises(InvalidQuestionError, match="does not start") as refused:
        batches(catalog, max_num_batched_tokens=512, max_num_seqs=1_024)

    assert refused.value.field == "max_num_seqs"


@pytest.mark.parametrize(
    ("version", "stated", "expected"),
    [
        (None, {"max_num_batched_tokens": 1_024}, (1_024, 256)),
        (None, {"max_num_seqs": 4_096}, (16_384, 4_096)),
        (None, {"max_num_batched_tokens": 1_024, "max_loras": 0}, (1_024, 1_024)),
        ("0.11.0", {"max_num_batched_tokens": 1_024}, (1_024, 1_024)),
    ],
)
def test_with_adapters_a_step_has_room_for_the_drafts_of_all(
    catalog: Snapshot, version: str | None, stated: dict[str, Any], expected: tuple[int, int]
) -> None:
    """vLLM `arg_utils.py` since 0.12: `max_num_batched_tokens < max_num_seqs * (num_speculative_tokens + 1)` raises."""
    both = {"max_loras": 2, "num_speculative_tokens": 3, **stated}

    assert batches(catalog, version=version, **both)[:2] == expected


def test_more_drafts_of_adapters_than_a_step_holds_do_not_start(catalog: Snapshot) -> None:
    with pytest.raises(InvalidQuestionError, match="4 tokens each") as refused:
        batches(catalog, max_num_batched_tokens=1_024, max_num_seqs=512, max_loras=2, num_speculative_tokens=3)

    assert "at most 256" in str(refused.value.accepted)


def test_a_step_has_more_tokens_than_one_request_has_drafts(catalog: Snapshot) -> None:
    """vLLM 0.33 `config/vllm.py`: `max_num_batched_tokens <= self.num_lookahead_tokens` raises; none of n-grams.

    Up to 0.32 `max_num_new_slots_for_drafting` stood there: 0 of prediction modules, EAGLE and EAGLE-3.
    """
    few: dict[str, Any] = {"max_num_batched_tokens": 4, "num_speculative_tokens": 4}

    with pytest.raises(InvalidQuestionError, match="4 are drafted a request") as refused:
        batches(catalog, **few)
    assert refused.value.field == "max_num_batched_tokens"
    assert batches(catalog, **{**few, "max_num_batched_tokens": 5})[0] == 5
    assert batches(catalog, **few, speculative_method="ngram")[0] == 4
    assert batches(catalog, version="0.32", **few)[0] == batches(catalog, "sglang", **few)[0] == 4


def test_an_engine_without_that_rule_keeps_its_requests(catalog: Snapshot) -> None:
    tokens, seqs, _ = batches(catalog, "sglang", max_num_batched_tokens=256)

    assert tokens == 256 < seqs


def test_a_command_with_adapters_and_drafts_starts(asked: Asked) -> None:
    settings = StatedSettings(max_loras=2, num_speculative_tokens=7, speculative_method="ngram")
    sized = size(replace(asked("qwen3-32b", "h200", load=users(600, 500, 100), settings=settings), timers=None))
    args = sized.engine_args
    seqs, tokens = (int(args[args.index(flag) + 1]) for flag in ("--max-num-seqs", "--max-num-batched-tokens"))

    assert seqs * 8 <= tokens
    assert sized.replicas * sized.layout.data_parallel_size * seqs >= 600


@pytest.mark.parametrize("count", [1_500, 2_000, 3_000])
def test_what_a_size_says_to_carry_is_what_its_command_lets_run(asked: Asked, count: int) -> None:
    sized = size(replace(asked("deepseek-v3", "h200", load=users(count, 2_000, 500)), timers=None))
    args = sized.engine_args
    seqs, tokens = (int(args[args.index(flag) + 1]) for flag in ("--max-num-seqs", "--max-num-batched-tokens"))

    assert seqs <= tokens
    assert sized.replicas * sized.layout.data_parallel_size * seqs >= count
