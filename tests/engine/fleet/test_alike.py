"""A search by memory alone that was made for other users finds what it would find now."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.engine.fleet.aims import Merit
from service.engine.fleet.choice import better
from service.engine.fleet.questions import SizeQuestion
from service.engine.inputs import Alike
from service.questions.size import SizeQuery
from service.questions.sources import PastedModels, Sources


@pytest.fixture(scope="module")
def plain(catalog: Snapshot) -> SizeQuestion:
    asked: dict[str, Any] = {"model": "qwen3-32b", "gpu": "l40s", "latency": "none"}
    sources = Sources(catalog=catalog, timers=None, pasted_models=PastedModels())
    return SizeQuery(**asked, concurrent_requests=8, input_tokens=2_000, output_tokens=200).looked_up(sources)


@pytest.mark.parametrize("than", [(inf, inf), (8.0, 0.0), (1.0, 0.0)])
def test_what_is_better_is_the_same_for_all_users_between(plain: SizeQuestion, than: Merit) -> None:
    """Searches that take note are asked of every number of users, those that do not of the ends of what was noted."""
    seen: dict[tuple[int, float], Merit] = {}
    for users in range(1, 121, 3):
        alike = Alike()
        load = replace(plain.load, concurrent_requests=users, alike=alike)
        merit = better(replace(plain, load=load), than)
        assert alike.fewest <= users <= alike.most
        seen[alike.fewest, alike.most] = merit
    assert len(seen) < 40  # several numbers of users share a search
    for (fewest, most), merit in seen.items():
        for end in {fewest, int(min(most, 120))}:
            assert better(replace(plain, load=replace(plain.load, concurrent_requests=end)), than) == merit


def test_a_search_that_is_refused_forgets_nothing_that_was_noted(plain: SizeQuestion) -> None:
    alike = Alike(fewest=3, most=9)
    refused = replace(
        plain, layout=replace(plain.layout, tensor_parallel_size=7), load=replace(plain.load, alike=alike)
    )
    with pytest.raises(EngineError):
        better(refused, (inf, inf))
    assert (alike.fewest, alike.most) == (3, 9)


def test_what_others_enclose_is_what_a_search_would_find(plain: SizeQuestion) -> None:
    """Users and lengths in no order: the later ones stand between earlier ones; those that take no note are searched."""
    for number in range(60):
        users, tokens, than = 1 + 37 * number % 120, 200 + 1_009 * number % 4_000, ((inf, inf), (4.0, 0.0))[number % 2]
        load = replace(plain.load, concurrent_requests=users, input_tokens=tokens)
        alike = Alike()
        merit = better(replace(plain, load=replace(load, alike=alike)), than)
        assert alike.fewest <= users <= alike.most
        assert merit == better(replace(plain, load=load), than)
