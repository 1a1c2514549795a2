"""Experts that DeepEP sends tokens to, beside what published pools wrote and read each second."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, deployed, plan_replica
from service.engine.inputs import Layout
from service.engine.time.steps import Timing
from service.performance.exchanged import EXPECTED_ERROR
from tests.conftest import shared_timers

SERVER_GPUS = 8


def timing_of(
    catalog: Snapshot, ranks: int, gpu: str = "h100", model: str = "deepseek-v3", *, overlaps: bool = False
) -> Timing:
    layout = Layout(
        data_parallel_size=ranks, expert_parallel=True, all2all_backend="deepep", enable_two_batch_overlap=overlaps
    )
    facts, rules = catalog.model(model), rules_for("sglang")
    stated = StatedSettings(all2all_backend="deepep", max_model_len=80_000)
    found = shared_timers().timer(deployed(plan_replica(facts, catalog.gpu(gpu), layout, stated, rules)))
    assert found is not None
    return found


def test_a_pool_that_decodes_writes_what_was_published(catalog: Snapshot) -> None:
    # lmsys.org/blog/2025-05-05-large-scale-ep, 72 H100, 256 requests on each at 2,000 tokens: 22,310 tokens/s a server
    # with two overlapping batches, "25.5%" more than without.
    step_s = timing_of(catalog, 64).steps.decode_s(256, 2_000)

    assert SERVER_GPUS * 256 / step_s == pytest.approx(22_310 / 1.255, rel=0.05)


def test_a_rack_that_decodes_writes_what_was_published(catalog: Snapshot) -> None:
    # lmsys.org/blog/2025-06-16-gb200-part-1: 48 GPUs, 2,000 tokens, without overlapping batches: 7,583 tokens/s a GPU;
    # part 2, September 2025: 768 requests on each and more, 9,087 with overlapped kernels.
    fewer, more = (768 / timing_of(catalog, ranks, "gb200").steps.decode_s(768, 2_000) for ranks in (32, 64))

    assert more < 7_583 < fewer < 9_087


def test_few_requests_of_long_contexts_decode_as_published(catalog: Snapshot) -> None:
    # lmsys.org/blog/2025-07-17-mtp: 16 H200, 2 requests on each at 65,536 tokens, 60.4 tokens/s a rank with overlapped
    # scheduling and without drafts.
    step_s = timing_of(catalog, 16, "h200").steps.decode_s(2, 67_000)

    assert 2 / step_s == pytest.approx(60.4, rel=0.05)


@pytest.mark.parametrize(("prompt", "published"), [(1_024, 57_674), (2_048, 54_543), (4_096, 50_302)])
def test_a_pool_that_reads_prompts_is_within_the_error_of_what_was_published(
    catalog: Snapshot, prompt: int, published: int
) -> None:
    # The same of 32 H100, 16,384 tokens on each, with overlapping batches; without, up to 1.405 times fewer.
    step_s = timing_of(catalog, 32).steps.mixed_s(16_384, prompt / 2, 0, 0)
    read = SERVER_GPUS * 16_384 / step_s

    assert published / 1.405 * 0.95 < read < published
    assert read == pytest.approx(published, rel=EXPECTED_ERROR)


def test_kernels_are_measured_ones_and_as_sure_as_is_said(catalog: Snapshot) -> None:
    basis = timing_of(catalog, 32).basis

    assert basis.is_measured
    assert basis.expected_error_fraction == EXPECTED_ERROR


def test_another_model_of_such_experts_is_told_in_proportion(catalog: Snapshot) -> None:
    # lmsys.org/blog/2025-07-20-k2-large-scale-ep: 384 experts of that shape; 24,000 tokens/s a server of 96 H200 with
    # 480 requests on each, where the larger batch carries more than 256.
    timing = timing_of(catalog, 64, "h200", "kimi-k2-instruct")
    written = SERVER_GPUS * 256 / timing.steps.decode_s(256, 2_050)

    assert not timing.basis.is_measured
    assert 0.7 * 24_000 < written < 1.1 * 24_000
    assert timing.basis.expected_error_fraction > EXPECTED_ERROR


def test_attention_to_picked_latents_grows_less_with_the_context(catalog: Snapshot) -> None:
    # DeepSeek-V3.2 is V3 with attention to 2,048 picked tokens (its report, figure 3: cheaper the longer the context).
    to_all, picked = (timing_of(catalog, 16, "h200", model).steps for model in ("deepseek-v3", "deepseek-v3.2"))
    grown = [steps.decode_s(32, 64_000) - steps.decode_s(32, 8_000) for steps in (to_all, picked)]

    assert timing_of(catalog, 16, "h200", "deepseek-v3.2").basis.is_measured
    assert grown[1] < 0.5 * grown[0]
