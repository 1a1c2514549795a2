"""Layouts that the engine would start, and those it refuses."""

from dataclasses import replace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from packaging.version import Version

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import REFERENCE, Device, device_of
from service.engine.engines.plans import plan_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.fleet.layouts import check_layout, is_legal
from service.engine.fleet.space import Target, space_of
from service.engine.formats.quantization import Quantization
from service.engine.inputs import EngineName, Layout, StatedLayout
from service.engine.layers import Architecture


# model, TP, decode-context ranks: vLLM 0.33 refuses to start each
@pytest.mark.parametrize(
    ("model", "tp", "dcp"),
    [
        ("deepseek-v3", 8, 3),  # "tp_size=8 must be divisible by dcp_size=3."
        ("qwen3-30b-a3b", 4, 2),  # "... to be greater than the model's total number of KV heads (4)"
        ("qwen3-235b-a22b", 8, 4),  # "exceeds the maximum supported value (2)"
        ("gpt-oss-120b", 16, 2),  # "DCP not support sliding window."
        ("deepseek-v4-flash", 4, 4),  # the same
    ],
)
def test_a_cache_that_cannot_be_spread_is_refused(catalog: Snapshot, model: str, tp: int, dcp: int) -> None:
    facts = catalog.model(model)
    quantization = replace(facts.checkpoints[0].quantization, block=0)  # heads alone decide here
    layout = Layout(tensor_parallel_size=tp, decode_context_parallel_size=dcp)

    with pytest.raises(UnsupportedLayoutError) as refused:
        check_layout(facts.architecture, quantization, layout)

    assert refused.value.field == "decode_context_parallel_size"


@pytest.mark.parametrize(
    ("layout", "field", "without", "has"),
    # Read from the wheels of 0.7.3 to 0.8.3; older ones were taken to have the flags of 0.8.5.
    [
        (Layout(data_parallel_size=2), "data_parallel_size", "0.8.2", "0.8.3"),
        (Layout(tensor_parallel_size=2, expert_parallel=True), "expert_parallel", "0.7.3", "0.8.0"),
    ],
)
def test_a_layout_without_a_flag_is_refused_under_versions_before_it(
    catalog: Snapshot, layout: Layout, field: str, without: str, has: str
) -> None:
    facts = catalog.model("mixtral-8x7b")
    quantization = facts.checkpoints[0].quantization

    with pytest.raises(UnsupportedLayoutError, match=f"vLLM {without} has no such flag") as refused:
        check_layout(facts.architecture, quantization, layout, Device(plan=plan_of(Version(without))))
    assert refused.value.field == field
    check_layout(facts.architecture, quantization, layout, Device(plan=plan_of(Version(has))))


def test_an_old_version_is_told_a_layout_that_it_starts(client: TestClient) -> None:
    """DeepSeek-V3 was told three copies of the attention, in a command that left out the flag for them."""
    asked: dict[str, Any] = {"model": "deepseek-v3", "gpu": "h200", "concurrent_requests": 64, "input_tokens": 1_000}
    answer = client.get("/size", params={**asked, "output_tokens": 200, "engine_version": "0.7.3"}).json()

    assert answer["feasible"]
    assert answer["layout"]["data_parallel_size"] == 1
    assert not answer["layout"]["expert_parallel"]
    assert not [sentence for sentence in answer["warnings"] if "has no --" in sentence]


def capacity(client: TestClient, **extra: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": "deepseek-v3", "gpu": "h200", "tensor_parallel_size": 8, "max_model_len": 8_192}
    response = client.get("/capacity", params={**asked, **extra})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def test_caches_are_not_spread_unless_that_saves_gpus(client: TestClient) -> None:
    plain, spread = capacity(client), capacity(client, decode_context_parallel_size=8)

    assert plain["layout"]["decode_context_parallel_size"] == 1
    assert spread["kv_cache"]["num_gpu_blocks"] == plain["kv_cache"]["num_gpu_blocks"]
    assert spread["kv_cache"]["tokens"] == pytest.approx(8 * plain["kv_cache"]["tokens"], rel=1e-6)
    flags = spread["engine_args"]
    assert flags[flags.index("--decode-context-parallel-size") + 1] == "8"
    assert any("decode_context_parallel_size" in warning for warning in spread["warnings"])


def test_other_engines_have_no_rule_for_spread_caches(client: TestClient) -> None:
    response = client.get(
        "/capacity",
        params={"model": "deepseek-v3", "gpu": "h200", "engine": "sglang", "tensor_parallel_size": 8,
                "decode_context_parallel_size": 8},
    )  # fmt: skip

    assert response.status_code == 422
    assert "decode_context_parallel_size" in response.text


# model, layout, what the refusal names; vLLM 0.33 `verify_with_parallel_config`, `divide`, `validate_fp8_block_shape`
REFUSED: dict[str, tuple[str, Layout, str]] = {
    "heads": ("qwen2.5-7b-instruct", Layout(tensor_parallel_size=8), "28 attention heads"),
    "latent heads": ("deepseek-v3", Layout(tensor_parallel_size=3), "128 attention heads"),
    "stages": ("llama-3.1-8b", Layout(pipeline_parallel_size=33), "exceeds the 32 layers"),
    "experts": ("mixtral-8x7b-v0.1", Layout(data_parallel_size=16, expert_parallel=True), "the model has 8"),
    "no experts": ("llama-3.1-8b", Layout(tensor_parallel_size=2, expert_parallel=True), "the model has 0"),
    # vLLM 0.33's own configuration: "Number of experts in the model must be greater than 0"
    "unseen experts": ("dbrx-instruct", Layout(tensor_parallel_size=4, expert_parallel=True), "finds no experts"),
}


@pytest.mark.parametrize(("model", "layout", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_divide_is_named(catalog: Snapshot, model: str, layout: Layout, words: str) -> None:
    facts = catalog.model(model)
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    with pytest.raises(UnsupportedLayoutError, match=words):
        check_layout(facts.architecture, quantization, layout)


def test_ranks_beyond_the_key_value_heads_repeat_them(catalog: Snapshot) -> None:
    facts = catalog.model("qwen3-235b-a22b")  # 64 query heads, 4 of keys and values
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    assert is_legal(facts.architecture, quantization, Layout(tensor_parallel_size=8), REFERENCE)


# model, layout, words. SGLang 0.5.23: `srt/models/gemma3_mm.py`, `mllama4.py`, `qwen3_next.py` (a `forward` without
# `pp_proxy_tensors`) and `model_runner.py` ("Pipeline Parallel is not compatible with this model.");
# `fused_moe_triton/layer.py` (`assert self._num_global_routed % storage_ep_size == 0`)
REFUSED_BY_SGLANG = [
    ("gemma-3-27b", Layout(pipeline_parallel_size=3), "SGLang has no pipeline stages for Gemma3"),
    ("llama-4-scout", Layout(pipeline_parallel_size=5), "SGLang has no pipeline stages for Llama4"),
    ("qwen3-next-80b-a3b", Layout(pipeline_parallel_size=2), "SGLang has no pipeline stages for Qwen3Next"),
    (
        "qwen3-235b-a22b",
        Layout(tensor_parallel_size=2, data_parallel_size=3, expert_parallel=True),
        "6 do not divide 128",
    ),
]


@pytest.mark.parametrize(("model", "layout", "words"), REFUSED_BY_SGLANG)
def test_sglang_refuses_stages_it_has_not_and_experts_left_over(
    catalog: Snapshot, model: str, layout: Layout, words: str
) -> None:
    facts, gpu = catalog.model(model), catalog.gpu("h100")
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    with pytest.raises(UnsupportedLayoutError, match=words):
        check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("sglang")))
    check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("vllm")))


@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-32b", "deepseek-v3", "gemma-4-31b"])
def test_sglang_splits_other_classes_into_stages(catalog: Snapshot, model: str) -> None:
    """SGLang 0.5.23 `srt/models/`: their `forward` takes `pp_proxy_tensors`."""
    facts, device = catalog.model(model), device_of(catalog.gpu("h100"), rules_for("sglang"))

    check_layout(facts.architecture, facts.checkpoints[0].quantization, Layout(pipeline_parallel_size=2), device)


# vLLM 0.33 `fused_moe/config.py` (`assert self.intermediate_size % tp_size == 0`, of all ranks that attend together),
# 0.10.2 `fused_moe/layer.py` and SGLang 0.5.23 `fused_moe_triton/layer.py` the same
CUT_EXPERTS = [
    ("glm-4.5-air", Layout(data_parallel_size=7), "data_parallel_size", "7 ranks do not divide the model's 1408"),
    ("mixtral-8x7b-v0.1", Layout(data_parallel_size=3), "data_parallel_size", "3 ranks do not divide"),
    ("gpt-oss-120b", Layout(tensor_parallel_size=7), "tensor_parallel_size", "7"),
]


@pytest.mark.parametrize(("model", "layout", "field", "words"), CUT_EXPERTS)
@pytest.mark.parametrize("engine", ["vllm", "sglang"])
def test_ranks_divide_the_experts_that_they_cut(
    catalog: Snapshot, engine: EngineName, model: str, layout: Layout, field: str, words: str
) -> None:
    facts, device = catalog.model(model), device_of(catalog.gpu("h100"), rules_for(engine))
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    with pytest.raises(UnsupportedLayoutError, match=words) as refused:
        check_layout(facts.architecture, quantization, layout, device)
    assert refused.value.field == field


# SGLang 0.5.23 `srt/models/deepseek_v2.py`: dense parts and shared experts are split over the ranks of all copies
# (`parallel_group="tp"`), also where experts are dealt out whole, without DeepEP; `layers/linear.py` (`divide`)
BESIDE_EXPERTS = [
    ("kimi-k2.6", Layout(data_parallel_size=3, expert_parallel=True), "3 ranks do not divide the model's 2048 shared"),
    ("kimi-k2.6", Layout(tensor_parallel_size=2, data_parallel_size=3, expert_parallel=True), "6 ranks do not divide"),
    ("glm-4.5-air", Layout(data_parallel_size=5, expert_parallel=True), "5 ranks do not divide"),
]


@pytest.mark.parametrize(("model", "layout", "words"), BESIDE_EXPERTS)
def test_sglang_splits_what_stands_beside_experts_over_all_ranks(
    catalog: Snapshot, model: str, layout: Layout, words: str
) -> None:
    facts, gpu = catalog.model(model), catalog.gpu("b300")
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    with pytest.raises(UnsupportedLayoutError, match=words) as refused:
        check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("sglang")))
    assert refused.value.field == "data_parallel_size"
    check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("vllm")))


def test_a_shared_expert_fills_blocks_on_each_rank_of_sglang(catalog: Snapshot) -> None:
    """SGLang 0.5.23 `layers/quantization/fp8.py`: "Weight output_partition_size = ... is not divisible by"."""
    facts, gpu = catalog.model("deepseek-v3"), catalog.gpu("h200")
    blocks = facts.checkpoints[0].quantization

    for copies, starts in ((2, True), (4, False)):  # 2,048 columns over 16 ranks, and over 32
        layout = Layout(tensor_parallel_size=8, data_parallel_size=copies, expert_parallel=True)
        assert is_legal(facts.architecture, blocks, layout, device_of(gpu, rules_for("sglang"))) is starts
        assert is_legal(facts.architecture, blocks, layout, device_of(gpu, rules_for("vllm")))


# SGLang 0.5.23 `arg_groups/model_overrides/gpt_oss.py`: `triton_kernel` on Hopper and older GPUs where `ep_size == 1`,
# `flashinfer_mxfp4` on Blackwell; else `layers/quantization/mxfp4.py` unpacks ("upcast_from_mxfp")
@pytest.mark.parametrize(("gpu", "starts"), [("h100", False), ("a100-80gb", False), ("l40s", False), ("b200", True)])
def test_sglang_deals_out_gpt_oss_where_its_experts_stay_packed(catalog: Snapshot, gpu: str, *, starts: bool) -> None:
    facts = catalog.model("gpt-oss-120b")
    packed, plain = (
        facts.checkpoints[0].quantization,
        replace(facts.checkpoints[0].quantization, method="", scheme="none"),
    )
    dealt, cut = Layout(tensor_parallel_size=2, expert_parallel=True), Layout(tensor_parallel_size=2)
    device, of_vllm = (device_of(catalog.gpu(gpu), rules) for rules in (rules_for("sglang"), rules_for("vllm")))

    assert is_legal(facts.architecture, packed, dealt, device) is starts
    assert is_legal(facts.architecture, packed, cut, device)
    assert is_legal(facts.architecture, plain, dealt, device)
    assert is_legal(facts.architecture, packed, dealt, of_vllm)


# TensorRT-LLM `mapping.py` (`ep_experts`: `num_experts // self.moe_ep_size`), `_torch/modules/attention.py` ("dp_size =
# tp_size", "tp_size = 1" with `enable_attention_dp`; `assert self.num_heads % (tp_size * cp_size) == 0`), its
# documentation, "Parallelism in TensorRT LLM": the product of both sizes for experts is `tensor_parallel_size`
REFUSED_BY_TENSORRT_LLM = [
    ("glm-4.5-air", Layout(data_parallel_size=3, expert_parallel=True), "3 do not divide 128"),
    ("qwen3-235b-a22b", Layout(tensor_parallel_size=2, data_parallel_size=4), "a copy of the attention on each rank"),
    ("qwen3-235b-a22b", Layout(tensor_parallel_size=3), "64 attention heads"),
]


@pytest.mark.parametrize(("model", "layout", "words"), REFUSED_BY_TENSORRT_LLM)
def test_tensorrt_llm_refuses_experts_left_over_and_copies_that_are_split(
    catalog: Snapshot, model: str, layout: Layout, words: str
) -> None:
    facts, device = catalog.model(model), device_of(catalog.gpu("b200"), rules_for("tensorrt-llm"))
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    with pytest.raises(UnsupportedLayoutError, match=words):
        check_layout(facts.architecture, quantization, layout, device)
    for ranks in (4, 8):
        for legal in (Layout(tensor_parallel_size=ranks, expert_parallel=True), Layout(data_parallel_size=ranks)):
            check_layout(facts.architecture, quantization, legal, device)


COPIES_IN_SGLANG = [
    ("mixtral-8x7b-v0.1", Layout(data_parallel_size=8), "has no copies of it", "data_parallel_size"),
    ("olmoe-1b-7b", Layout(tensor_parallel_size=2, data_parallel_size=2), "has no copies of it", "data_parallel_size"),
    # SGLang 0.5.23 `models/phimoe.py`: "shards over the attention TP group (4 ranks) but all-reduces over the full"
    ("phi-3.5-moe-instruct", Layout(tensor_parallel_size=4, data_parallel_size=2), "one rank each", "tensor_parallel"),
    ("kimi-vl-a3b-instruct", Layout(tensor_parallel_size=4, data_parallel_size=2), "one rank each", "tensor_parallel"),
]


@pytest.mark.parametrize(("model", "layout", "words", "field"), COPIES_IN_SGLANG)
def test_sglang_has_copies_of_the_attention_where_its_class_has(
    catalog: Snapshot, model: str, layout: Layout, words: str, field: str
) -> None:
    """Else its ranks would reduce over those that hold other requests: built there, OLMoE has 0.87 GB for 1.57."""
    facts, gpu = catalog.model(model), catalog.gpu("h100")
    quantization = facts.checkpoints[0].quantization

    with pytest.raises(UnsupportedLayoutError, match=words) as refused:
        check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("sglang")))
    assert refused.value.field.startswith(field)
    check_layout(facts.architecture, quantization, layout, device_of(gpu, rules_for("vllm")))


@pytest.mark.parametrize("model", ["phi-3.5-moe-instruct", "kimi-vl-a3b-instruct", "qwen3-30b-a3b"])
def test_sglang_has_whole_copies_of_other_classes(catalog: Snapshot, model: str) -> None:
    facts, device = catalog.model(model), device_of(catalog.gpu("h100"), rules_for("sglang"))

    check_layout(facts.architecture, facts.checkpoints[0].quantization, Layout(data_parallel_size=8), device)


def test_blackwell_s_kernels_fill_blocks_with_zeros(catalog: Snapshot) -> None:
    """SGLang's pull request 16824: "pad this `intermediate_size` dimension to a multiple of 128", of Qwen3 on 8."""
    facts, layout = catalog.model("qwen3-235b-a22b"), Layout(tensor_parallel_size=8)
    fp8 = next(each.quantization for each in facts.checkpoints if each.hf_id == "Qwen/Qwen3-235B-A22B-FP8")

    check_layout(facts.architecture, fp8, layout, device_of(catalog.gpu("b200"), rules_for("sglang")))
    with pytest.raises(UnsupportedLayoutError, match="leaves 192 of the 1536 expert"):
        check_layout(facts.architecture, fp8, layout, device_of(catalog.gpu("h100"), rules_for("sglang")))


def test_whole_experts_are_dealt_out_over_any_ranks(catalog: Snapshot) -> None:
    """vLLM 0.33 `layers/fused_moe/expert_map_manager.py`: the first ranks hold one more."""
    facts = catalog.model("glm-4.5-air")
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    check_layout(facts.architecture, quantization, Layout(data_parallel_size=7, expert_parallel=True))


BEFORE_REFINING = Device(plan=plan_of(Version("0.28")))


def in_fp8_blocks(catalog: Snapshot) -> tuple[Architecture, Quantization]:
    """Return Qwen3-235B-A22B-FP8: 1,536 columns of an expert over 8 ranks are 192, blocks are of 128."""
    facts = catalog.model("qwen3-235b-a22b")
    return facts.architecture, next(
        it.quantization for it in facts.checkpoints if it.quantization.scheme == "fp8-block"
    )


def test_blocks_of_a_quantization_hold_back_experts_that_are_cut_only(catalog: Snapshot) -> None:
    architecture, blocks = in_fp8_blocks(catalog)

    with pytest.raises(UnsupportedLayoutError, match=r"192 of the 1536 expert columns .* vLLM 0\.28") as refused:
        check_layout(architecture, blocks, Layout(tensor_parallel_size=8), BEFORE_REFINING)
    assert refused.value.accepted == "a smaller tensor_parallel_size, or expert_parallel=true"
    check_layout(architecture, blocks, Layout(tensor_parallel_size=8, expert_parallel=True), BEFORE_REFINING)


def test_experts_get_finer_scales_where_a_rank_does_not_fill_a_block(catalog: Snapshot) -> None:
    # vLLM 0.29 `refine_fp8_moe_block_shape`: gcd(128, 192, 4,096) = 64, but at least 32.
    architecture, blocks = in_fp8_blocks(catalog)

    check_layout(architecture, blocks, Layout(tensor_parallel_size=8))
    check_layout(architecture, blocks, Layout(tensor_parallel_size=16))
    compressed = replace(blocks, is_compressed_tensors=True)  # whose loader has no such step
    with pytest.raises(UnsupportedLayoutError, match="whole quantization blocks of 128"):
        check_layout(architecture, compressed, Layout(tensor_parallel_size=8))


@pytest.mark.parametrize(("device", "cut"), [(REFERENCE, [1, 2, 4, 8]), (BEFORE_REFINING, [1, 2, 4])])
def test_layouts_come_smallest_first_and_experts_are_cut_or_dealt_out(
    catalog: Snapshot, device: Device, cut: list[int]
) -> None:
    architecture, blocks = in_fp8_blocks(catalog)
    target = Target(gpu=catalog.gpu("h100"), engine="vllm", device=device)
    stated = StatedLayout(pipeline_parallel_size=1, data_parallel_size=1)

    layouts = space_of(architecture, blocks, target, stated).usual
    assert [layout.tensor_parallel_size for layout in layouts if not layout.expert_parallel] == cut
    assert [layout.tensor_parallel_size for layout in layouts if layout.expert_parallel] == [2, 4, 8]
    asked = space_of(architecture, blocks, target, replace(stated, expert_parallel=True)).usual
    assert [layout.tensor_parallel_size for layout in asked] == [1, 2, 4, 8]
    # vLLM 0.33 `fused_moe/config.py`: `use_ep` needs more than one rank, whatever --enable-expert-parallel says.
    assert [layout.expert_parallel for layout in asked] == [False, True, True, True]


@pytest.mark.parametrize(
    ("model", "gpu"), [("deepseek-v3", "h200"), ("qwen3-235b-a22b", "h100"), ("gpt-oss-120b", "b200")]
)
def test_what_is_searched_where_a_layout_is_stated_is_searched_where_none_is(
    catalog: Snapshot, model: str, gpu: str
) -> None:
    """Else a question that states more would be answered with fewer GPUs."""
    facts, target = catalog.model(model), Target(gpu=catalog.gpu(gpu), engine="vllm", device=REFERENCE)
    architecture, quantization = facts.architecture, facts.checkpoints[0].quantization
    everything = space_of(architecture, quantization, target, StatedLayout())

    for layout in everything.layouts:
        whole = StatedLayout(
            tensor_parallel_size=layout.tensor_parallel_size,
            pipeline_parallel_size=layout.pipeline_parallel_size,
            data_parallel_size=layout.data_parallel_size,
            expert_parallel=layout.expert_parallel,
        )
        either = replace(whole, expert_parallel=None)
        fewer = (replace(either, data_parallel_size=None), replace(either, pipeline_parallel_size=None))
        for stated in (whole, either, *fewer):
            assert set(space_of(architecture, quantization, target, stated).layouts) <= set(everything.layouts)


# vLLM 0.9.2 `engine/arg_utils.py` has no --decode-context-parallel-size; 0.10.2 has
@pytest.mark.parametrize(("version", "starts"), [("0.9.2", False), ("0.10.2", True)])
def test_context_is_spread_over_ranks_from_a_version_on(catalog: Snapshot, version: str, *, starts: bool) -> None:
    device = device_of(catalog.gpu("h200"), rules_for("vllm", version))
    spread = Layout(tensor_parallel_size=8, decode_context_parallel_size=8)
    model = catalog.model("deepseek-r1")
    stored = model.checkpoints[0].quantization

    assert is_legal(model.architecture, stored, spread, device) is starts
    assert is_legal(model.architecture, stored, Layout(tensor_parallel_size=8), device)


# SGLang 0.5.23 `srt/entrypoints/engine.py` (`pp_size_per_node`): copies are ranks of one group, dealt out evenly
@pytest.mark.parametrize(("engine", "stands"), [("vllm", True), ("sglang", False)])
def test_copies_stand_beside_others_gpus_where_servers_hold_them_whole(
    catalog: Snapshot, engine: EngineName, *, stands: bool
) -> None:
    model, gpu = catalog.model("deepseek-v3"), catalog.gpu("h100")
    target = Target(gpu=gpu, engine=engine, device=device_of(gpu, rules_for(engine)))
    space = space_of(model.architecture, model.checkpoints[0].quantization, target, StatedLayout())
    odd = [layout for layout in space.layouts if layout.gpus_per_replica == 12 and layout.data_parallel_size == 3]

    assert bool(odd) is stands
    assert not set(odd) & set(space.usual)


def test_servers_of_few_gpus_are_filled_until_a_model_fits(catalog: Snapshot) -> None:
    # 671 GB of weights over cards of 24 GB, four in a server: twelve servers hold a copy of the attention each.
    model, gpu = catalog.model("deepseek-v3"), catalog.gpu("rtx-4090")
    target = Target(gpu=gpu, engine="vllm", device=device_of(gpu, rules_for("vllm")))
    space = space_of(model.architecture, model.checkpoints[0].quantization, target, StatedLayout())
    sizes = {layout.gpus_per_replica for layout in space.layouts if layout.pipeline_parallel_size > 1}

    assert gpu.gpus_per_node == 4
    assert {48, 64} <= sizes


# vLLM 0.33 `layers/vocab_parallel_embedding.py` (`pad_vocab_size`, `divide`), 0.8 the same; SGLang the same file
# ("padding_size *= self.tp_size", up to 0.5.21 on CPUs alone), and TensorRT-LLM `_torch/modules/embedding.py`
# (`LMHead.padding_size`), pad on
@pytest.mark.parametrize(
    ("model", "tp", "rows"), [("kimi-k3", 6, 163_840), ("phi-4", 5, 100_352), ("gpt2-xl", 5, 50_304)]
)
def test_ranks_divide_the_vocabulary_where_it_is_padded_to_64_alone(
    catalog: Snapshot, model: str, tp: int, rows: int
) -> None:
    facts, gpu, layout = catalog.model(model), catalog.gpu("b300"), Layout(tensor_parallel_size=tp)
    quantization = replace(facts.checkpoints[0].quantization, block=0)

    for rules in (rules_for("vllm"), rules_for("vllm", "0.8.5"), rules_for("sglang", "0.5.21")):
        with pytest.raises(UnsupportedLayoutError, match=f"does not divide the {rows} rows"):
            check_layout(facts.architecture, quantization, layout, device_of(gpu, rules))
    for rules in (rules_for("sglang"), rules_for("tensorrt-llm")):
        check_layout(facts.architecture, quantization, layout, device_of(gpu, rules))


@pytest.mark.parametrize(("engine", "shares_last"), [("vllm", True), ("sglang", False), ("tensorrt-llm", True)])
def test_whole_stages_may_leave_gpus_of_the_last_server_to_others(
    catalog: Snapshot, engine: EngineName, *, shares_last: bool
) -> None:
    """Three stages of four GPUs are twelve, on a server and half of one: by Ray or MPI, not by equal shares."""
    model, gpu = catalog.model("llama-3.1-405b"), catalog.gpu("h100")
    target = Target(gpu=gpu, engine=engine, device=device_of(gpu, rules_for(engine)))
    space = space_of(model.architecture, model.checkpoints[0].quantization, target, StatedLayout())
    staged = {(each.tensor_parallel_size, each.pipeline_parallel_size) for each in space.unusual}

    assert ((4, 3) in staged) is shares_last
    assert (2, 6) in staged  # as many on each
    assert (8, 5) in staged
    assert not {(4, 3), (2, 5), (2, 6)} & {
        (each.tensor_parallel_size, each.pipeline_parallel_size) for each in space.usual
    }
