"""Laws that hold for every question: a table shows points, a law shows the line."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.catalog.engine_rules import rules_for
from service.engine.answers.capacity import capacity
from service.engine.answers.size import size
from service.engine.errors import EngineError, RefusedStartError
from service.engine.families import parse_architecture
from service.engine.families.registry import REGISTRY
from service.engine.fleet.deployments import resolve_size
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion, StatedSettings
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Headroom, Layout, Limits, Load, StatedLayout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.results import MemoryPerGpu
from tests.conftest import TIMES, shared_catalog
from tests.engine.answers.chosen import chosen, gpus

CATALOG = shared_catalog()
SIZABLE = sorted(entry.id for entry in CATALOG.entries.models if CATALOG.refusal(entry.id) is None)
GPUS = ["h100-sxm-80gb", "h200-sxm-141gb", "a100-sxm-80gb", "l40s", "l4", "b200-sxm-180gb"]
KNOWN_GPUS = [gpu for gpu in GPUS if gpu in CATALOG.gpus] or sorted(CATALOG.gpus)[:6]
RULES = rules_for("vllm")
QUICK = settings(max_examples=60 * TIMES, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def question(model: str, gpu: str, requests: int, input_tokens: int, **wish: Any) -> SizeQuestion:
    return SizeQuestion(
        model=CATALOG.model(model),
        gpu=CATALOG.gpu(gpu),
        load=Load(concurrent_requests=requests, request_rate_per_s=None, input_tokens=input_tokens, output_tokens=256),
        limits=Limits(),
        layout=StatedLayout(),
        headroom=Headroom(),
        settings=StatedSettings(**wish),
        rules=RULES,
    )


def terms(memory: MemoryPerGpu) -> int:
    return (
        memory.reserved_bytes
        + memory.weight_bytes
        + memory.activation_bytes
        + memory.cuda_graph_bytes
        + memory.non_torch_bytes
        + memory.kv_cache_bytes
        - memory.shortfall_bytes
    )


def is_short_enough(asked: SizeQuestion) -> bool:
    return asked.load.input_tokens + asked.load.output_tokens <= asked.model.architecture.max_position_embeddings


def is_started(asked: SizeQuestion) -> bool:
    """Return whether the engine would start the model on the GPU at all."""
    try:
        resolve_size(asked)
    except RefusedStartError:
        return False
    return True


questions = (
    st.builds(
        question,
        st.sampled_from(SIZABLE),
        st.sampled_from(KNOWN_GPUS),
        st.integers(1, 5_000),
        st.integers(1, 30_000),
    )
    .filter(is_short_enough)
    .filter(is_started)
)


@QUICK
@given(questions)
def test_the_ledger_adds_up_to_the_byte(asked: SizeQuestion) -> None:
    sizing = size(asked)

    assert terms(sizing.memory_per_gpu) == sizing.memory_per_gpu.total_bytes
    assert min(sizing.memory_per_gpu.kv_cache_bytes, sizing.memory_per_gpu.activation_bytes) >= 0
    assert sizing.feasible == (sizing.gpus > 0)


@QUICK
@given(questions, st.integers(1, 5_000))
def test_more_load_never_needs_fewer_gpus(asked: SizeQuestion, more: int) -> None:
    requests = asked.load.concurrent_requests or 1
    heavier = replace(asked, load=replace(asked.load, concurrent_requests=requests + more))

    fewer, many = chosen(asked), chosen(heavier)

    assert fewer.is_feasible == many.is_feasible
    assert fewer.gpus <= many.gpus


@QUICK
@given(questions, st.integers(1, 30_000))
def test_longer_requests_never_need_fewer_gpus(asked: SizeQuestion, more: int) -> None:
    longer = replace(asked, load=replace(asked.load, input_tokens=asked.load.input_tokens + more))
    assume(is_short_enough(longer))

    assert gpus(asked) <= gpus(longer)


def test_a_pool_that_its_error_may_leave_empty_is_filled_with_fewer() -> None:
    short, long = (size(question("llama-3.1-405b", "t4", 53, tokens)) for tokens in (7, 55))

    assert short.gpus <= long.gpus == 64


@QUICK
@given(questions)
def test_capacity_carries_what_size_returned_and_one_replica_less_does_not(asked: SizeQuestion) -> None:
    sizing = size(asked)
    if not sizing.feasible:
        return
    wish = StatedLayout(
        tensor_parallel_size=sizing.layout.tensor_parallel_size,
        pipeline_parallel_size=sizing.layout.pipeline_parallel_size,
        data_parallel_size=sizing.layout.data_parallel_size,
        expert_parallel=sizing.layout.expert_parallel,
    )

    def carried(gpus: int) -> int:
        answer = capacity(
            CapacityQuestion(
                model=asked.model,
                gpu=asked.gpu,
                gpu_count=gpus,
                load=replace(asked.load, concurrent_requests=None),
                input_tokens=asked.load.input_tokens,
                output_tokens=asked.load.output_tokens,
                limits=Limits(),
                layout=wish,
                settings=asked.settings,
                rules=RULES,
            )
        )
        return answer.max_concurrent_requests

    requests = asked.load.concurrent_requests or 1
    assert carried(sizing.gpus) >= requests
    if sizing.replicas > 1:
        assert carried(sizing.gpus - sizing.gpus_per_replica) < requests


@QUICK
@given(
    st.sampled_from(SIZABLE),
    st.integers(1, 200_000),
    st.integers(0, 200_000),
    st.sampled_from([1, 2, 4, 8]),
)
def test_more_context_never_takes_fewer_blocks(model: str, tokens: int, more: int, tp: int) -> None:
    shape = cache_shape(CATALOG.model(model).architecture, Layout(tensor_parallel_size=tp), "auto", None)

    assert shape.blocks_per_request(tokens, 0) <= shape.blocks_per_request(tokens + more, 0)
    assert shape.blocks_per_request(tokens, 0) <= shape.blocks_per_request(tokens, 16_384)


@QUICK
@given(st.sampled_from(SIZABLE), st.sampled_from([1, 2, 4, 8]))
def test_a_wider_cache_never_holds_fewer_bytes(model: str, tp: int) -> None:
    architecture, layout = CATALOG.model(model).architecture, Layout(tensor_parallel_size=tp)

    narrow, wide = (cache_shape(architecture, layout, dtype, None) for dtype in ("fp8", "bf16"))

    assert narrow.bytes_per_token <= wide.bytes_per_token
    assert narrow.bytes_per_token_per_gpu <= wide.bytes_per_token_per_gpu


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True, allow_infinity=True) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
field_names = st.sampled_from(
    [
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "vocab_size",
        "intermediate_size",
        "sliding_window",
        "layer_types",
        "text_config",
        "vision_config",
        "rope_scaling",
        "num_experts",
        "kv_lora_rank",
        "hybrid_override_pattern",
        "block_configs",
        "no_rope_layers",
        "moe_layer_freq",
        "max_position_embeddings",
    ]
)


@settings(max_examples=200 * TIMES, deadline=None)
@given(
    st.sampled_from(sorted(REGISTRY.families)),
    st.dictionaries(field_names, json_values | st.integers(0, 64), max_size=12),
)
def test_a_junk_config_is_refused_and_never_breaks(name: str, config: dict[str, Any]) -> None:
    try:
        parse_architecture({**config, "architectures": [name]})
    except EngineError as refusal:
        assert refusal.detail
        assert refusal.field


@settings(max_examples=100 * TIMES, deadline=None)
@given(st.dictionaries(st.sampled_from(["quant_method", "quant_algo", "bits", "config_groups", "ignore"]), json_values))
def test_a_junk_quantization_is_refused_and_never_breaks(config: dict[str, Any]) -> None:
    try:
        parse_quantization(config)
    except EngineError as refusal:
        assert refusal.detail


def test_an_unknown_architecture_is_refused_by_name() -> None:
    with pytest.raises(EngineError, match="MadeUpForCausalLM"):
        parse_architecture({"architectures": ["MadeUpForCausalLM"]})
