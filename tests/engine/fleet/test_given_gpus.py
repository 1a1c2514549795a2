"""What the GPUs given carry."""

from dataclasses import replace

import pytest

from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.given_gpus import at_context, largest, resolve_capacity
from service.engine.inputs import Limits, StatedLayout
from service.engine.time.demand import Arrivals
from tests.engine.conftest import Asked, arrivals, capacity_of, users


def test_the_layout_that_holds_most_is_chosen(asked: Asked) -> None:
    question = capacity_of(asked("qwen3-32b", load=users(None)), 8)
    resolved = resolve_capacity(question)
    most = largest(question, resolved)

    for ranks in (1, 2, 4, 8):
        stated = replace(question, layout=StatedLayout(tensor_parallel_size=ranks, pipeline_parallel_size=1))
        other = largest(stated, resolved)
        held = other.replicas * other.capacity.max_concurrent_requests
        assert held <= most.replicas * most.capacity.max_concurrent_requests


def test_too_few_gpus_for_the_stated_layout_are_refused(asked: Asked) -> None:
    question = capacity_of(asked(layout=StatedLayout(tensor_parallel_size=4, pipeline_parallel_size=1)), 2)

    with pytest.raises(UnsupportedLayoutError) as refusal:
        largest(question, resolve_capacity(question))

    assert (refusal.value.field, refusal.value.accepted) == ("gpu_count", "at least 4")


def test_a_cap_is_chosen_where_more_arrivals_keep_pace_so(asked: Asked) -> None:
    limits = Limits(ttft_s=5.0, tpot_s=0.05)
    question = capacity_of(asked("gemma-3-27b-it", "h200", load=arrivals(60.0, 2_000), limits=limits), 8)
    settings = replace(question.settings, max_num_batched_tokens=8_192)
    layout = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=1)
    question = replace(question, layout=layout, settings=settings)
    paced = largest(question, resolve_capacity(question))
    own = largest(
        replace(question, settings=replace(question.settings, max_num_seqs=1_024)), resolve_capacity(question)
    )

    assert paced.is_paced
    assert paced.plan.settings.max_num_seqs < 1_024
    assert paced.replica is not None
    assert paced.capacity.binds in ("tpot", "ttft")
    assert own.replica is not None
    assert paced.replica.most(Arrivals, limits).load >= own.replica.most(Arrivals, limits).load


def test_requests_of_a_context_fill_it(asked: Asked) -> None:
    question = capacity_of(asked(load=users(3)), 1)
    row = at_context(question, resolve_capacity(question), 8_192)

    assert row.plan.settings.max_model_len == row.load.input_tokens + row.load.output_tokens == 8_192
    assert row.load.output_tokens == 512
    assert not row.is_asked
