"""Loads that have the same sizing by memory alone: told of one, it is what each of them is sized to."""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.answers.alike import may_be_alike, sized
from service.engine.answers.noted import load_notes
from service.engine.answers.size import size
from service.engine.fleet.alike import lengths_of
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.inputs import Limits
from service.questions.size import SizeQuery
from service.questions.sources import PastedModels, Sources
from tests.conftest import shared_timers


@pytest.fixture(scope="module")
def plain(catalog: Snapshot) -> SizeQuestion:
    asked: dict[str, Any] = {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "latency": "none"}
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels())
    return SizeQuery(**asked, input_tokens=1_000, output_tokens=200).looked_up(sources)


@pytest.mark.parametrize("users", [1, 40, 300, 2_000])
@pytest.mark.parametrize("input_tokens", [200, 1_111, 4_000])
def test_every_load_between_the_fewest_and_the_most_users_is_sized_alike(
    plain: SizeQuestion, users: int, input_tokens: int
) -> None:
    question = replace(plain, load=replace(plain.load, concurrent_requests=users, input_tokens=input_tokens))
    _, alike = sized(question)
    assert alike is not None
    assert alike.fewest_users <= users <= alike.most_users
    for other in {alike.fewest_users, users, (alike.fewest_users + users) // 2, min(int(alike.most_users), 4 * users)}:
        load = replace(question.load, concurrent_requests=other)
        assert alike.is_of(question, load)
        assert alike.told(load, load_notes(load)) == size(replace(question, load=load))


def test_lengths_of_as_many_blocks_are_sized_alike_and_the_next_block_is_not(plain: SizeQuestion) -> None:
    question = plain
    first, last, beyond = (replace(question.load, input_tokens=tokens) for tokens in (985, 1_000, 1_001))
    assert lengths_of(question, first) == lengths_of(question, last) == lengths_of(question, question.load)
    assert lengths_of(question, beyond) != lengths_of(question, last)
    _, alike = sized(question)
    assert alike is not None
    for load in (first, last):
        assert alike.told(load, load_notes(load)) == size(replace(question, load=load))


def test_what_time_decides_or_blocks_do_not_divide_is_nobody_elses_answer(plain: SizeQuestion) -> None:
    assert may_be_alike(plain)
    assert not may_be_alike(replace(plain, timers=shared_timers()))
    assert not may_be_alike(replace(plain, limits=Limits(ttft_s=1.0)))
    assert not may_be_alike(replace(plain, settings=StatedSettings(block_size=8)))
    assert not may_be_alike(replace(plain, settings=StatedSettings(num_speculative_tokens=2)))


def test_a_context_shortened_to_the_request_is_told_of_it_alone(plain: SizeQuestion) -> None:
    settings = StatedSettings(kv_cache_memory_bytes=1_300 * 131_072)
    tight = replace(plain, settings=settings, load=replace(plain.load, concurrent_requests=1))
    sizing, alike = sized(tight)
    served = next(note.value for note in sizing.assumptions if note.name == "max_model_len")
    assert isinstance(served, int)
    assert served < lengths_of(tight, tight.load)[1]
    assert alike is None
