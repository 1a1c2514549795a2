"""What ends requests sooner on the given GPUs and holds half as many. Referee: the named layout, pinned."""

from dataclasses import replace

from service.engine.answers.capacity import capacity
from service.engine.inputs import Limits, StatedLayout
from tests.engine.conftest import Asked, arrivals, capacity_of, users


def test_a_layout_that_holds_half_as_many_and_ends_sooner_is_told_by_its_own_figures(asked: Asked) -> None:
    question = capacity_of(asked("llama-3.1-8b", load=users(None, 2_000, 500)), 8)
    own = replace(question.settings, max_num_batched_tokens=8_192, max_num_seqs=1_024)  # as vLLM has it on an H100
    pinned = replace(question, layout=StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1), settings=own)
    most, copies = capacity(question), capacity(pinned)

    assert most.max_concurrent_requests > copies.max_concurrent_requests
    assert copies.at_load is not None
    (told,) = (each for each in most.warnings if "most requests run at once" in each)
    assert "on 8 replicas of tensor_parallel_size=1 with the engine's own settings" in told
    assert f" {copies.max_concurrent_requests} do" in told
    assert f"{copies.at_load.requests_per_s:.3g} of them per s" in told


def test_what_ends_requests_sooner_keeps_the_limits_that_are_stated(asked: Asked) -> None:
    limits = Limits(ttft_s=30.0, tpot_s=0.1)
    question = capacity_of(asked("llama-3.1-8b", load=users(None, 2_000, 500), limits=limits), 1)
    own = replace(question.settings, max_num_batched_tokens=8_192, max_num_seqs=1_024)  # as vLLM has it on an H100
    most, larger = capacity(question), capacity(replace(question, settings=own))

    assert larger.latency is not None
    assert larger.latency.ttft_s.p95 <= 30.0
    assert larger.latency.tpot_s.p95 <= 0.1
    (told,) = (each for each in most.warnings if "most requests run at once" in each)
    assert f" {larger.max_concurrent_requests} do, and end within" in told


def test_the_same_layout_in_larger_steps_is_told_where_small_ones_make_room(asked: Asked) -> None:
    question = capacity_of(asked("gpt-oss-120b", load=users(None, 4_000, 500)), 1)
    own = replace(question.settings, max_num_batched_tokens=8_192, max_num_seqs=1_024)  # as vLLM has it on an H100
    most, larger = capacity(question), capacity(replace(question, settings=own))

    assert most.max_concurrent_requests > larger.max_concurrent_requests
    assert any(f" {larger.max_concurrent_requests} do, and end within" in each for each in most.warnings)


def test_the_layout_that_holds_a_few_more_is_told_beside_the_one_that_ends_the_load_sooner(asked: Asked) -> None:
    question = capacity_of(asked("llama-3.3-70b", load=users(64, 1_500, 300)), 4)
    staged = replace(question, layout=StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=4))
    chosen, roomier = capacity(question), capacity(staged)

    assert chosen.layout.tensor_parallel_size == 4
    assert roomier.max_concurrent_requests > chosen.max_concurrent_requests > 64
    assert roomier.at_load is not None
    assert chosen.at_load is not None
    assert roomier.latency is not None
    assert chosen.at_load.requests_per_s > 1.5 * roomier.at_load.requests_per_s
    (told,) = (each for each in chosen.warnings if "most requests run at once" in each)
    assert f"{roomier.max_concurrent_requests} instead of {chosen.max_concurrent_requests}" in told
    assert "on pipeline_parallel_size=4" in told
    assert f"those asked for end within {roomier.latency.end_to_end_s.p95:.3g} s" in told


def test_the_layout_that_answers_more_is_told_beside_the_one_that_ends_a_rate_sooner(asked: Asked) -> None:
    question = capacity_of(asked("qwen3-32b", load=arrivals(1.0, 2_000, 500)), 4)
    staged = replace(question, layout=StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=4))
    chosen, faster = capacity(question), capacity(staged)

    assert chosen.layout.tensor_parallel_size == 4
    assert chosen.requests_per_s is not None
    assert faster.requests_per_s is not None
    assert faster.requests_per_s > chosen.requests_per_s
    (told,) = (each for each in chosen.warnings if "most requests are answered per s" in each)
    assert f"{faster.requests_per_s:.3g} instead of {chosen.requests_per_s:.3g}" in told
