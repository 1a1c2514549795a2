"""Caches spread over ranks: what decoding exchanges, from vLLM's own collectives."""

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, deployed, plan_replica
from service.engine.inputs import Layout
from service.engine.time.steps import Timing
from tests.conftest import shared_timers


def timing_of(catalog: Snapshot, spread: int) -> Timing:
    layout = Layout(tensor_parallel_size=8, decode_context_parallel_size=spread)
    model, gpu, rules = catalog.model("deepseek-v3"), catalog.gpu("h200"), rules_for("vllm")
    found = shared_timers().timer(deployed(plan_replica(model, gpu, layout, StatedSettings(), rules)))
    assert found is not None
    return found


def test_an_exchange_takes_what_its_bytes_take(catalog: Snapshot) -> None:
    # vLLM `v1/attention/ops/dcp.py`: queries of 576 elements and outputs of 512, of 128 heads in 61 layers, 7 of 8 from
    # other ranks, two bytes each; NVLink of 450 GB/s, of which NCCL reaches three quarters.
    alone, spread = timing_of(catalog, 1).steps, timing_of(catalog, 8).steps
    sent = 100 * 61 * 128 * (576 + 512) * 2 * 7 / 8
    waited = 61 * 3 * 10.8e-6  # NCCL's own latency among eight ranks
    expected = sent / (0.75 * 450e9) + waited
    added = spread.decode_s(100, 1_000) - alone.decode_s(100, 1_000)

    assert 0.5 * expected < added < 2 * expected


def test_more_ranks_exchange_more(catalog: Snapshot) -> None:
    times = [timing_of(catalog, spread).steps.decode_s(64, 4_000) for spread in (1, 2, 4, 8)]

    assert times == sorted(times)
    assert times[0] < times[-1]
