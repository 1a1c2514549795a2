"""Prefill and decode on GPUs of their own."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.fleet import pools
from service.engine.fleet.pools import SHARES, decode_question, interconnect_bytes_per_s, pools_for
from service.engine.inputs import Limits, Load, StatedLayout
from service.engine.time.demand import demand_of
from service.engine.time.replica import timed
from tests.engine.conftest import Asked, arrivals, users

LIMITS = Limits(ttft_s=1.0, tpot_s=0.03)


def test_the_first_token_waits_for_reading_sending_and_decoding(asked: Asked) -> None:
    pair = pools_for(asked("qwen3-32b", load=arrivals(6.0, 4_000), limits=LIMITS))
    ttft_s = pair.ttft_s()

    assert pair.is_feasible
    assert pair.read is not None
    assert pair.decoded is not None
    assert ttft_s is not None
    assert pair.transfer_s == pair.sent_bytes / pair.interconnect_bytes_per_s
    unsent = replace(pair.prefill.load, sent_bytes_per_s=None)
    reader = timed(pair.prefill.plan, asked().timers, unsent)
    assert reader is not None
    read = reader.seen(demand_of(unsent).per_replica(pair.prefill.replicas), len(pair.read.ttft_s))
    assert pair.read.ttft_s.mean == pytest.approx(read.ttft_s.mean + pair.transfer_s)
    assert ttft_s.mean == pytest.approx(pair.read.ttft_s.mean + pair.decoded.ttft_s.mean)
    later = pair.end_to_end_s(pair.decoded.end_to_end_s.distribution())
    assert later.mean == pytest.approx(pair.decoded.end_to_end_s.mean + pair.read.ttft_s.mean)


def test_the_decode_pool_reads_nothing_and_keeps_pace_alone(asked: Asked) -> None:
    question = decode_question(asked(load=arrivals(6.0), limits=LIMITS, disaggregated=True))

    assert (question.load.phase, question.limits.ttft_s, question.limits.tpot_s) == ("decode", None, 0.03)
    assert not question.disaggregated


def test_the_wait_after_reading_keeps_its_share_of_the_limit(asked: Asked) -> None:
    question = asked("qwen3-32b", load=arrivals(6.0, 4_000), limits=LIMITS)
    pair = pools_for(question)
    share_s = pair.decoding.limits.ttft_s

    assert share_s in SHARES  # of a second
    assert pair.decoding == decode_question(question, share_s)
    assert pair.decoded is not None
    assert pair.decoded.ttft_s.percentile(95) <= (share_s or 0)


@pytest.mark.parametrize("ttft_s", [0.02, 0.1, 0.4, 0.5, 0.6, 0.8])
@pytest.mark.parametrize("rate", [0.46, 2.3])
def test_pools_keep_the_limit_together_or_are_none(asked: Asked, ttft_s: float, rate: float) -> None:
    """Where no share of the limit left enough for either pool, pools were told that took 0.54 s of 0.5."""
    limits = Limits(ttft_s=ttft_s, tpot_s=0.03)
    pair = pools_for(asked("llama-3.1-8b", "l40s", load=arrivals(rate, 5_662, 303), limits=limits))
    told = pair.ttft_s()

    assert pair.is_feasible == (ttft_s >= 0.5)
    assert not pair.is_feasible or (told is not None and told.p95 <= ttft_s)


@pytest.mark.parametrize(
    ("model", "gpu", "load", "limits"),
    [
        ("qwen2.5-7b-instruct", "rtx-4090", arrivals(1.36, 1_069, 46), Limits(ttft_s=0.22, tpot_s=0.2)),
        ("mistral-7b-instruct-v0.3", "rtx-4090", arrivals(1.55, 1_153, 490), Limits(ttft_s=0.27, tpot_s=0.05)),
        ("llama-2-7b", "t4", arrivals(7.29, 281, 74), Limits(ttft_s=0.55)),
    ],
)
def test_no_stated_layout_takes_fewer_gpus_than_pools_of_any(
    asked: Asked, model: str, gpu: str, load: Load, limits: Limits
) -> None:
    """Over a slow network more GPUs send a prompt sooner: the limit for all was that of the layout that reads most.

    Pools of the second were told to be impossible, and stand on 12 GPUs of which four serve each request together.
    """
    pair = pools_for(asked(model, gpu, load=load, limits=limits))
    stated = [
        pools_for(asked(model, gpu, load=load, limits=limits, layout=StatedLayout(tensor_parallel_size=ranks)))
        for ranks in (1, 2, 4)
    ]

    assert pair.is_feasible
    assert pair.gpus <= min(each.gpus for each in stated if each.is_feasible)


@pytest.mark.parametrize(
    ("model", "gpu", "load", "ttft_s", "gpus"),
    [
        ("llama-3.1-8b", "mi300x", arrivals(60.0, 500, 100), 0.1, 5),
        ("mixtral-8x7b", "b200", arrivals(20.0, 500, 400), 0.05, 24),
        ("gemma-3-27b", "h100", arrivals(1.0, 2_000, 100), 0.1, 20),
    ],
)
def test_no_share_of_the_limit_takes_fewer_gpus(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, model: str, gpu: str, load: Load, ttft_s: float, gpus: int
) -> None:
    """Referee: each share alone. Of six shares, halves of each other, the best took as many GPUs as stand here."""
    question = asked(model, gpu, load=load, limits=Limits(ttft_s=ttft_s))
    found = pools_for(question)
    alone: list[int] = []
    for share in SHARES[::4]:
        monkeypatch.setattr(pools, "SHARES", (share,))
        pair = pools_for(question)
        alone += [pair.gpus] if pair.is_feasible else []

    assert found.gpus <= min(alone)
    assert found.gpus < gpus


def test_a_decode_pool_without_limits_keeps_up_with_what_comes(asked: Asked) -> None:
    """A full cache gives up requests and makes their tokens twice: as many may run as it holds to their end."""
    pair = pools_for(asked("gpt-oss-120b", "l40s", load=arrivals(9.0, 3_000, 800)))

    assert pair.is_feasible
    assert pair.decoded is not None
    assert pair.decode.replicas * pair.decoded.requests_per_s == pytest.approx(9.0, rel=0.05)


def test_users_of_a_closed_loop_are_refused(asked: Asked) -> None:
    with pytest.raises(InvalidQuestionError) as refusal:
        pools_for(asked(load=users(8)))

    assert refusal.value.field == "disaggregated"


def test_caches_go_over_the_fast_fabric_only_where_it_joins_several_nodes(catalog: Snapshot) -> None:
    gpu = catalog.gpu("h100")
    rack = replace(gpu, gpus_per_node=4, scale_up_domain_gpus=72)

    assert interconnect_bytes_per_s(gpu, 4) == gpu.scale_out_bytes_per_s
    assert interconnect_bytes_per_s(rack, 4) == rack.scale_up_bytes_per_s
    assert interconnect_bytes_per_s(rack, 72) == rack.scale_out_bytes_per_s
