"""Each pool is told as it is to be started: its layout, and the engine's arguments."""

import re
from dataclasses import replace

import pytest

from service.engine.answers.advice import looser_pools
from service.engine.answers.pools import pools_of
from service.engine.answers.size import size
from service.engine.fleet.pools import least_ttft_s, pools_for
from service.engine.inputs import Limits
from tests.engine.conftest import Asked, arrivals


def test_a_prefill_pool_is_told_whole(asked: Asked) -> None:
    """Its GPUs and its tensor parallelism alone do not tell stages from copies."""
    question = asked("llama-3.3-70b", load=arrivals(10.0, 4_000, 300), limits=Limits())
    pair = pools_for(question)
    told = pools_of(pair, frozenset())
    args = dict(zip(told.prefill_engine_args[::2], told.prefill_engine_args[1::2], strict=False))

    assert told.prefill_gpus_per_replica > told.prefill_tensor_parallel_size
    assert told.prefill_layout.gpus_per_replica == told.prefill_gpus_per_replica
    assert args["--tensor-parallel-size"] == str(told.prefill_tensor_parallel_size)
    assert args["--pipeline-parallel-size"] == str(told.prefill_layout.pipeline_parallel_size)
    assert args["--max-num-seqs"] == str(pair.prefill.plan.settings.max_num_seqs)


@pytest.mark.parametrize("ttft_s", [0.001, 0.1, 0.16])
def test_pools_that_are_too_slow_are_told_one_limit_for_both(asked: Asked, ttft_s: float) -> None:
    """What one pool takes was told as the limit: 0.0215 s beside 0.162 s, and pools of neither stood within it.

    Then the sum of both was, which no share of a limit leaves to each. Referee: the same question with that limit.
    """
    question = asked("llama-3.1-8b", "l40s", load=arrivals(5.0, 2_000, 100), limits=Limits(ttft_s=ttft_s))
    [told] = [sentence for sentence in size(replace(question, disaggregated=True)).would_fit if "ttft_s" in sentence]
    found = re.match(r"ttft_s of at least (\S+): a single request alone takes (\S+) s to be .*, and (\S+) s from", told)
    assert found is not None
    least_s, read_s, decoded_s = map(float, found.groups())

    assert least_s == pytest.approx(least_ttft_s(read_s, decoded_s), rel=0.01)
    assert pools_for(replace(question, limits=Limits(ttft_s=least_s))).is_feasible
    assert not pools_for(replace(question, limits=Limits(ttft_s=0.97 * least_s))).is_feasible


def test_formats_that_both_pools_need_are_told(asked: Asked) -> None:
    """Of the decode pool alone an int4 model was told to fit on 74 GPUs, which no pool that reads it stood beside."""
    hopeless, near = (
        asked("mistral-small-24b", "h100", load=arrivals(1.0, 2_000, 400), limits=Limits(ttft_s=limit_s))
        for limit_s in (0.03, 0.0535)
    )
    told = [size(replace(each, disaggregated=True)).would_fit for each in (hopeless, near)]

    assert not any(sentence.endswith(" fits") or " fits on " in sentence for sentence in told[0])
    assert "weight_format=int4 fits" in told[1]
    assert pools_for(replace(near, settings=replace(near.settings, weight_format="int4"))).is_feasible


def test_pools_that_a_load_keeps_busy_are_told_so(asked: Asked) -> None:
    """A request alone is in time, and those of the load are not."""
    question = asked("llama-3.1-8b", "l40s", load=arrivals(5.0, 2_000, 100), limits=Limits(ttft_s=0.16))
    [told] = looser_pools(pools_for(question), Limits(ttft_s=0.2), ())

    assert told.startswith("a looser ttft_s: a single request alone takes 0.1")


def test_pools_without_a_number_are_none_of_either(asked: Asked) -> None:
    """No pool read in time, and the other one was told as 82 replicas, with a command, of an answer of no GPUs."""
    question = asked("llama-3.1-8b", "l40s", load=arrivals(5.0, 2_000, 100), limits=Limits(ttft_s=0.16))
    answer = size(replace(question, disaggregated=True))
    assert answer.pools is not None

    assert not answer.feasible
    assert (answer.gpus, answer.replicas, answer.pools.prefill_replicas, answer.pools.decode_replicas) == (0, 0, 0, 0)
    assert (answer.command, answer.at_load, answer.latency, answer.cost) == (None, None, None, None)
