"""What layouts hold at most: never less than any plan of them."""

from math import inf

import pytest

from service.engine.fleet.deployments import plan_for, resolve_size
from service.engine.fleet.planned import held_of, layouts_of
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.rooms import rooms_of
from service.engine.fleet.variants import Planner, variants
from service.engine.inputs import Layout
from service.engine.time.carried import carried_in_memory
from tests.engine.conftest import Asked, users


def planner_of(question: SizeQuestion, layout: Layout) -> Planner:
    load = question.load
    return Planner(
        lambda other: plan_for(question, other, layout),
        lambda other: held_of(other, layout, load.input_tokens, load.output_tokens),
    )


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gemma-3-27b", "deepseek-v3", "gpt-oss-20b"])
@pytest.mark.parametrize(("gpu", "tokens"), [("h100", 300), ("l40s", 9_000)])
def test_no_plan_of_a_layout_holds_more_than_its_room(asked: Asked, model: str, gpu: str, tokens: int) -> None:
    question = asked(model, gpu, load=users(900, input_tokens=tokens), timers=None)
    resolved = resolve_size(question)
    rooms = rooms_of(resolved)
    for layout in layouts_of(question, resolved).layouts[::7]:
        own, most = (rooms.of(layout, is_own=is_own) for is_own in (True, False))
        assert own is not None
        assert most is not None
        planner = planner_of(question, layout)
        with_own = carried_in_memory(plan_for(question, resolved, layout)).max_concurrent_requests
        assert with_own <= own.users(tokens + 200)
        for _, plan in variants(resolved, planner):
            assert carried_in_memory(plan).max_concurrent_requests <= most.users(tokens + 200)


def test_the_room_of_a_layout_is_found_once_for_all_lengths(asked: Asked) -> None:
    short, long = (asked(load=users(4, input_tokens=tokens), timers=None) for tokens in (100, 90_000))
    room = rooms_of(resolve_size(short)).of(Layout(), is_own=True)

    assert room is not None
    assert rooms_of(resolve_size(long)).of(Layout(), is_own=True) is room
    assert room.users(90_200) < room.users(300)


def test_replicas_at_best_are_those_that_full_rooms_come_to(asked: Asked) -> None:
    question = asked(load=users(4), timers=None)
    rooms = rooms_of(resolve_size(question))
    room = rooms.of(Layout(), is_own=True)
    assert room is not None
    full = asked(load=users(3 * room.users(1_200) + 1), timers=None)
    endless = asked(load=users(1, input_tokens=100_000_000), timers=None)

    assert rooms.replicas_at_best(full, Layout(), is_own=True) == 4
    assert rooms.replicas_at_best(endless, Layout(), is_own=True) == inf


@pytest.mark.parametrize("model", ["llama-3.1-405b", "deepseek-v3", "gpt-oss-120b", "qwen3-next-80b", "kimi-k2"])
@pytest.mark.parametrize("gpu", ["rtx-4090", "l40s"])
def test_a_layout_that_is_too_heavy_for_its_gpus_has_no_room_when_it_is_looked_for(
    asked: Asked, model: str, gpu: str
) -> None:
    question = asked(model, gpu, load=users(1, input_tokens=1), timers=None)
    resolved = resolve_size(question)
    rooms, layouts = rooms_of(resolved), layouts_of(question, resolved).layouts
    heavy = [each for each in layouts if not rooms.may_hold(question.load, each, is_own=False)]
    assert heavy
    for layout in heavy:
        room = rooms.of(layout, is_own=False)
        assert room is not None
        assert room.users(1) == 0
