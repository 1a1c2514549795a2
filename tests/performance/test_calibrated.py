"""What calibration makes of tables: what the host does for each request is seen, or hides behind kernels."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import EngineName, Layout, StatedSettings, Timing, deployed, plan_replica
from service.engine.time.records import ATTENDED, CONTEXTS, REQUESTS, TOKENS
from service.performance.chunked import CHUNKED_STATE_FACTOR
from service.performance.fitted import generation_of, row_for
from service.performance.known import MEASURED, STAGED_ERROR, kernel_class
from service.performance.tables import Factors, StepTables, TabledSteps, calibrated
from service.performance.timers import hides_host, launched_layers
from tests.conftest import shared_timers

HOST_S = 2e-5  # for each request
KERNELS_S = 0.002
FACTORS = Factors(
    decode_factor=1.0, small_prefill_factor=1.0, large_prefill_factor=1.0, step_overhead_s=0.001,
    sequence_overhead_s=HOST_S, mixed_overhead_s=0.0, request_overhead_s=0.0, tokenizer_s_per_token=0.0,
)  # fmt: skip


def flat(seconds: float) -> StepTables:
    return StepTables(
        decode=tuple(tuple(seconds for _ in CONTEXTS) for _ in REQUESTS),
        tokens=tuple(seconds for _ in TOKENS),
        attention=tuple(0.0 for _ in ATTENDED),
    )


def steps(*, hides: bool) -> TabledSteps:
    return calibrated(flat(KERNELS_S), flat(0.0), FACTORS, hides_host=hides)


@pytest.mark.parametrize("requests", [1, 64, 512])
def test_a_host_that_plans_ahead_takes_the_longer_of_both_and_else_their_sum(requests: int) -> None:
    host_s = requests * HOST_S

    assert steps(hides=False).decode_s(requests, 1_024) == pytest.approx(0.001 + KERNELS_S + host_s)
    assert steps(hides=True).decode_s(requests, 1_024) == pytest.approx(0.001 + max(KERNELS_S, host_s))


def test_iterations_with_prompts_hide_the_host_as_well() -> None:
    assert steps(hides=True).mixed_s(512, 256, 64, 1_024) == pytest.approx(0.001 + KERNELS_S)
    assert steps(hides=False).mixed_s(512, 256, 64, 1_024) == pytest.approx(0.001 + KERNELS_S + 64 * HOST_S)
    assert steps(hides=True).mixed_s(512, 256, 512, 1_024) == pytest.approx(0.001 + 512 * HOST_S)


def test_no_host_that_plans_ahead_is_slower_than_one_that_was_seen() -> None:
    """Vultr's 400 answers of 512 tokens end after 10.92 s; the last of them begins after twice the mean of 2.61."""
    slow = replace(FACTORS, sequence_overhead_s=1e-4)
    hidden, seen = (calibrated(flat(0.0), flat(0.0), slow, hides_host=hides) for hides in (True, False))

    step_s = (10.92 - 2 * 2.61) / 511
    assert hidden.decode_s(400, 1_024) - FACTORS.step_overhead_s == pytest.approx(step_s, rel=0.01)
    assert seen.decode_s(400, 1_024) - FACTORS.step_overhead_s == pytest.approx(0.04)


def test_what_one_request_takes_beyond_two_is_no_batch_s_to_bear() -> None:
    """Tables of Nemotron 3 Nano on two B200: 3.70 ms for one request, 2.74 for two, 3.14 for four."""
    decode = {1.0: 0.0037, 2.0: 0.00274, 4.0: 0.00314}
    rows = tuple(tuple(decode.get(requests, 0.004) for _ in CONTEXTS) for requests in REQUESTS)
    timed = calibrated(replace(flat(0.004), decode=rows), flat(0.0), FACTORS, hides_host=True)

    seen = [timed.decode_s(requests, 1_024) - FACTORS.step_overhead_s for requests in (1, 2, 4, 8)]
    assert seen == pytest.approx([0.00274, 0.00274, 0.00314, 0.004])


@pytest.mark.parametrize(
    ("model", "engine", "version", "keeps_prefixes", "expected"),
    [
        ("llama-3.1-8b", "vllm", "0.13.0", None, False),  # `async_scheduling` is on since 0.14
        ("llama-3.1-8b", "vllm", "0.15.1", None, True),
        ("nemotron-3-nano-30b-a3b", "vllm", "0.16.0", None, True),
        ("qwen3.5-9b", "vllm", "0.17.1", None, True),
        ("qwen3.5-9b", "sglang", "0.5.9", None, False),  # states have no buffers: overlapping is switched off
        ("qwen3.5-9b", "sglang", "0.5.9", False, True),  # `--disable-radix-cache`
        ("qwen3-next-80b-a3b", "sglang", "0.5.2", None, True),  # hybrids had no prefix cache (pull request 11214)
        ("llama-3.1-8b", "sglang", "0.5.9", None, True),
        ("qwen3.5-9b", "sglang", "0.5.14", None, True),
    ],
)
def test_the_host_hides_where_the_engine_plans_ahead(
    catalog: Snapshot,
    model: str,
    engine: EngineName,
    version: str,
    keeps_prefixes: bool | None,  # noqa: FBT001 - a case
    expected: object,
) -> None:
    stated = StatedSettings(enable_prefix_caching=keeps_prefixes)
    plan = plan_replica(
        catalog.model(model), catalog.gpu("h200"), Layout(tensor_parallel_size=2), stated, rules_for(engine, version),
        input_tokens=1_000, output_tokens=100,
    )  # fmt: skip

    assert hides_host(deployed(plan)) is expected


LAYERS = 48  # of Qwen3-30B-A3B


def test_kernels_outside_of_graphs_take_no_less_than_their_launch() -> None:
    """Issue 45709 of vLLM: Qwen3-30B-A3B on four L20 takes 34.4 ms a token without graphs, 11.8 with piecewise ones."""
    host = replace(FACTORS, layer_launch_s=0.0344 / LAYERS)
    few, many = (
        calibrated(flat(kernels_s), flat(0.0), host, hides_host=False, layers=LAYERS) for kernels_s in (0.0118, 0.05)
    )

    assert few.mixed_s(64, 32, 0, 0) == pytest.approx(0.001 + 0.0344)
    assert few.decode_s(1, 1_024) == pytest.approx(0.001 + 0.0118 + HOST_S)  # in a graph of the whole step
    assert many.mixed_s(64, 32, 0, 0) == pytest.approx(0.001 + 0.05)  # launched while kernels run


def test_an_iteration_launches_the_layers_of_every_stage_that_it_passes(catalog: Snapshot) -> None:
    whole, half = (
        deployed(
            plan_replica(
                catalog.model("qwen3-30b-a3b"), catalog.gpu("l40s"), Layout(pipeline_parallel_size=stages),
                StatedSettings(), rules_for("vllm", "0.15.1"), input_tokens=1_000, output_tokens=100,
            )
        )
        for stages in (1, 2)
    )  # fmt: skip

    assert (launched_layers(whole), launched_layers(half)) == (LAYERS, LAYERS)


def test_launches_of_captured_prompts_take_what_those_of_pieces_take(catalog: Snapshot) -> None:
    """SGLang's pull request 12160: a prompt of one token takes 82.64 ms without graphs, and 23.10 with them."""
    alone, captured = (
        deployed(
            plan_replica(
                catalog.model("qwen3-30b-a3b"), catalog.gpu("h200"), Layout(),
                StatedSettings(), rules_for("sglang", version), input_tokens=1_000, output_tokens=100,
            )
        )
        for version in ("0.5.9", "0.5.10")
    )  # fmt: skip

    assert launched_layers(alone) == LAYERS
    assert launched_layers(captured) == pytest.approx(LAYERS * 23.10 / 82.64)


STATE_S = 1e-6  # to read and write the state of a request


def test_beside_prompts_states_go_through_the_kernel_of_prompts() -> None:
    """Pull request 44700 of vLLM prints 3,952 us in place of 1,844 us, in which states are read and written at most."""
    floor = replace(flat(0.0), decode=tuple(tuple(STATE_S for _ in CONTEXTS) for _ in REQUESTS))
    plain, chunked = (
        calibrated(flat(KERNELS_S), floor, FACTORS, hides_host=False, chunked_states=more)
        for more in (0.0, CHUNKED_STATE_FACTOR)
    )
    more_s = chunked.mixed_s(512, 256, 64, 1_024) - plain.mixed_s(512, 256, 64, 1_024)

    assert more_s >= (3_952 / 1_844 - 1) * 64 * STATE_S
    assert chunked.mixed_s(512, 256, 0, 0) == plain.mixed_s(512, 256, 0, 0)
    assert chunked.decode_s(64, 1_024) == plain.decode_s(64, 1_024)


def test_states_that_tables_leave_out_come_on_top_of_every_iteration() -> None:
    floor = replace(flat(0.0), decode=tuple(tuple(requests * STATE_S for _ in CONTEXTS) for requests in REQUESTS))
    with_states, by_physics = (
        calibrated(flat(KERNELS_S), floor, FACTORS, hides_host=True, untabled_states=more) for more in (3.0, 0.0)
    )

    assert by_physics.decode_s(64, 1_024) == pytest.approx(0.001 + KERNELS_S + 64 * STATE_S)
    assert with_states.decode_s(64, 1_024) == pytest.approx(0.001 + KERNELS_S + 64 * 3 * STATE_S)
    assert with_states.mixed_s(512, 256, 64, 1_024) == pytest.approx(0.001 + KERNELS_S + 64 * 3 * STATE_S)


def test_cards_are_a_generation_of_their_own(catalog: Snapshot) -> None:
    named = {
        name: generation_of(catalog.gpu(name)) for name in ("a100", "rtx-3090", "b200", "rtx-5090", "l40s", "h100")
    }

    assert named == {
        "a100": "ampere", "rtx-3090": "ampere-card", "b200": "blackwell", "rtx-5090": "blackwell-card",
        "l40s": "ada", "h100": "hopper",
    }  # fmt: skip
    assert generation_of(replace(catalog.gpu("h100"), compute_capability=None)) == "hopper"


def test_experts_dealt_out_to_ranks_that_attend_together_are_a_class_of_their_own(catalog: Snapshot) -> None:
    def kernels(layout: Layout) -> str:
        gpu, rules = catalog.gpu("h100"), rules_for("vllm", "0.15.1")
        return kernel_class(deployed(plan_replica(catalog.model("gpt-oss-120b"), gpu, layout, StatedSettings(), rules)))

    assert kernels(Layout(tensor_parallel_size=4)) == "experts-mxfp4"
    assert kernels(Layout(tensor_parallel_size=4, expert_parallel=True)) == "experts-mxfp4-spread"
    assert kernels(Layout(data_parallel_size=4, expert_parallel=True)) == "experts-mxfp4"


def test_a_class_that_nobody_measured_dealt_out_is_taken_as_split() -> None:
    split, dealt = (
        row_for(MEASURED, "vllm", "vllm-0.33", "hopper", name) for name in ("experts-mxfp4", "experts-mxfp4-spread")
    )
    own = row_for(MEASURED, "vllm", "vllm-0.33", "hopper", "experts-fp8-block-spread")

    assert dealt is split
    assert own.kernels == "experts-fp8-block-spread"
    assert row_for(MEASURED, "vllm", "vllm-0.33", "hopper", "experts-sparse-fp8-block").kernels != own.kernels


def test_experts_stored_apart_do_not_learn_from_those_stored_as_the_rest(catalog: Snapshot) -> None:
    """DeepSeek-V4-Flash, dealt out over eight H100 under vLLM 0.31.

    7.68 ms for each token of one request, 10.81 ms of eight (github.com/tant2tls/Deepseek-serving); what was fitted
    on Qwen3-235B in fp8 blocks would have it 18.0 and 19.6.
    """
    settings = StatedSettings(max_model_len=262_144, max_num_seqs=64, max_num_batched_tokens=8_192)
    layout = Layout(tensor_parallel_size=8, expert_parallel=True)
    model, rules = catalog.model("deepseek-v4-flash"), rules_for("vllm", "0.31")
    key = deployed(plan_replica(model, catalog.gpu("h100"), layout, settings, rules))
    found = shared_timers().timer(key)

    assert kernel_class(key) == "experts-fp8-block"
    assert found is not None
    told_s = [found.steps.decode_s(requests, 1_100) for requests in (1, 8)]
    assert told_s == [pytest.approx(7.68e-3, rel=0.35), pytest.approx(10.81e-3, rel=0.15)]


def test_picking_tokens_is_a_class_of_its_own_that_others_do_not_learn_from(catalog: Snapshot) -> None:
    """DeepSeek-V3.2 is V3 but for its attention; all published runs of vLLM with fp8 blocks on H200 are of V3.2."""

    def kernels(model: str) -> str:
        rules, layout = rules_for("vllm"), Layout(tensor_parallel_size=8)
        return kernel_class(
            deployed(plan_replica(catalog.model(model), catalog.gpu("h200"), layout, StatedSettings(), rules))
        )

    assert (kernels("deepseek-v3"), kernels("deepseek-v3.2")) == ("experts-fp8-block", "experts-sparse-fp8-block")
    sparse, plain = (
        row_for(MEASURED, "vllm", "vllm-0.33", "blackwell", name)
        for name in ("experts-sparse-fp8-block", "experts-fp8-block")
    )
    assert sparse is plain  # of Blackwell's attention to picked tokens there are no runs


def test_stages_are_less_sure(catalog: Snapshot) -> None:
    def timing(layout: Layout) -> Timing:
        model, gpu = catalog.model("llama-3.1-70b-instruct"), catalog.gpu("h100")
        found = shared_timers().timer(deployed(plan_replica(model, gpu, layout, StatedSettings(), rules_for("vllm"))))
        assert found is not None
        return found

    staged, whole = (timing(Layout(tensor_parallel_size=2, pipeline_parallel_size=stages)) for stages in (2, 1))

    expected = (1 + whole.basis.expected_error_fraction) * (1 + STAGED_ERROR) - 1
    assert staged.basis.expected_error_fraction == pytest.approx(expected, abs=0.001)


def test_whose_kernels_stand_in_is_said(catalog: Snapshot) -> None:
    model, gpu = catalog.model("gpt-oss-120b"), catalog.gpu("h200-sxm-141gb")
    notes = {}
    for engine in ("sglang", "vllm"):
        plan = plan_replica(model, gpu, Layout(tensor_parallel_size=2), StatedSettings(), rules_for(engine))
        timing = shared_timers().timer(deployed(plan))
        assert timing is not None
        notes[engine] = timing.basis.note

    assert notes == {"sglang": "the kernels that sglang runs here were measured with vllm", "vllm": ""}


def test_a_version_without_runs_of_a_class_has_the_constants_of_the_one_before_it() -> None:
    """InferenceX of October 2025 ran TensorRT-LLM before 1.2 on Hopper; nobody published runs of 1.2 there."""
    own, older = (
        row_for(MEASURED, "tensorrt-llm", f"tensorrt-llm-{each}", "hopper", "dense-fp8") for each in ("1.2", "1.0")
    )

    assert own.factors == older.factors
