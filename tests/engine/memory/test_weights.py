"""Weights of ranks: what loading makes of a checkpoint, and what all ranks hold together."""

import json
from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.families import parse_architecture
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Layout
from service.engine.memory.matrices import layer_matrices
from service.engine.memory.weights import rank_weights


def test_a_conversion_to_fp8_holds_its_experts_in_fp8_too(catalog: Snapshot) -> None:
    # vLLM 0.33 `models/deepseek_v4/quant_config.py`: `expert_dtype`, fp4 where nothing is stated.
    model = catalog.model("deepseek-v4-flash")
    config = json.loads(model.config_json)
    stated = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
    whole = parse_architecture({**config, "expert_dtype": "fp8"})

    own, converted, published_so = (
        rank_weights(architecture, layout=Layout(), quantization=parse_quantization(quantization)).param_bytes
        for architecture, quantization in (
            (model.architecture, stated),
            (model.architecture, {**stated, "expert_dtype": "fp8"}),
            (whole, stated),
        )
    )

    assert converted == pytest.approx(published_so, rel=1e-4)
    assert converted > 1.8 * own


@pytest.mark.parametrize(
    "layout", [Layout(tensor_parallel_size=8), Layout(tensor_parallel_size=2, pipeline_parallel_size=4)]
)
def test_ranks_together_hold_at_least_the_whole(catalog: Snapshot, layout: Layout) -> None:
    for name in ("llama-3.1-70b-instruct", "deepseek-v3", "qwen3-235b-a22b", "qwen3-next-80b-a3b-instruct"):
        model = catalog.model(name)
        quantization = model.checkpoints[0].quantization
        whole = rank_weights(model.architecture, layout=Layout(), quantization=quantization).loaded_bytes
        rank = rank_weights(model.architecture, layout=layout, quantization=quantization).loaded_bytes

        assert rank * layout.gpus_per_replica >= whole


@pytest.mark.parametrize(
    ("model", "version", "loaded_gib", "printed"),
    [
        (
            "gpt-oss-120b",
            "0.10.1",
            65.97,
            "vllm-project/vllm issue 23278, one H100: Marlin, as nobody installed Triton's",
        ),
        ("gpt-oss-20b", "0.12", 13.47, "llm-d-planner docs/empirical-vllm-memory-results.md, H100, no version"),
        ("gpt-oss-20b", "0.19.0", 13.64, "the same page's later runs"),
        ("gpt-oss-120b", "0.14.1", 64.38, "start-up on one H100; the parameters alone are 60.8 GiB"),
        (
            "gpt-oss-120b",
            "0.25.1",
            61.29,
            "start-up of 2026-08-04 on one H100: since pull request 46549 without scales",
        ),
        ("gpt-oss-120b", "0.30", 61.43, "start-up of 2026-10-02 on one H200 NVL"),
        ("qwen3-32b", "0.11.0", 61.03, "llm-d-planner docs/empirical-vllm-memory-results.md, H100"),
        ("llama-3.1-8b-instruct", "0.31", 14.99, "vllm-project/vllm issue 10517"),
        ("qwen2.5-vl-7b-instruct", "0.10.1", 15.6271, "published start-up of 2025-08-25: a rotary table of three axes"),
    ],
)
def test_loaded_weights_are_what_start_ups_print(
    catalog: Snapshot, model: str, version: str, loaded_gib: float, printed: str
) -> None:
    facts = catalog.model(model)
    own = next(checkpoint for checkpoint in facts.checkpoints if checkpoint.is_default)

    device = device_of(catalog.gpu("h100"), rules_for("vllm", version))
    weights = rank_weights(facts.architecture, layout=Layout(), quantization=own.quantization, device=device)

    assert weights.loaded_bytes / (1 << 30) == pytest.approx(loaded_gib, rel=0.002), printed


def test_routed_experts_alone_are_fp8_in_maverick(catalog: Snapshot) -> None:
    """vllm-project/vllm issue 16152: eight ranks of 0.8.3 print "Model loading took 48.8682 GiB"."""
    facts = catalog.model("llama-4-maverick-17b-128e-instruct")
    fp8 = next(each for each in facts.checkpoints if each.weight_format == "fp8")

    device = device_of(catalog.gpu("h100"), rules_for("vllm", "0.8.5"))
    layout = Layout(tensor_parallel_size=8)
    weights = rank_weights(facts.architecture, layout=layout, quantization=fp8.quantization, device=device)

    assert weights.loaded_bytes / (1 << 30) == pytest.approx(48.8682, rel=0.001)


# model, TP, DP: parameters of one rank with experts dealt out over both, as vLLM 0.33 instantiates them (bytes). Shared
# experts, and first dense layers of sparse attention, are whole where ranks take different tokens to the experts.
DEALT_OUT = {
    ("deepseek-v3", 1, 8): 100_840_747_360,
    ("deepseek-v3", 2, 4): 93_146_443_872,
    ("glm-5", 2, 4): 205_947_792_384,
    ("glm-4.5-air", 2, 2): 57_095_096_832,
    ("qwen3-next-80b-a3b-instruct", 2, 2): 41_221_321_088,
    ("qwen3-30b-a3b", 2, 2): 16_049_401_856,
    ("nemotron-3-super-120b-a12b", 2, 2): 66_478_731_264,
}


@pytest.mark.parametrize(("case", "expected"), DEALT_OUT.items(), ids=str)
def test_attention_is_whole_on_every_data_parallel_rank(
    catalog: Snapshot, case: tuple[str, int, int], expected: int
) -> None:
    model, tp, dp = case
    facts = catalog.model(model)
    quantization = next(it for it in facts.checkpoints if it.is_default).quantization
    layout = Layout(tensor_parallel_size=tp, data_parallel_size=dp, expert_parallel=True)

    weights = rank_weights(facts.architecture, layout=layout, quantization=quantization)

    assert weights.param_bytes == expected


@pytest.mark.parametrize("expert_parallel", [False, True])
def test_sglang_splits_all_but_attention_over_its_copies(catalog: Snapshot, *, expert_parallel: bool) -> None:
    """SGLang 0.5.14 and 0.5.23 `models/deepseek_v2.py`: head, dense parts and shared experts, as long as no DeepEP runs.

    vLLM holds shared experts whole where ranks hold routed ones whole (`is_sequence_parallel`), and SGLang does not.

    DeepSeek-V3's config: width 7,168, 129,280 words in 16 bits, 3 dense layers of 18,432 columns and 58 shared experts
    of 2,048 in fp8, with an fp32 scale for each 128 x 128 of them.
    """
    facts = catalog.model("deepseek-v3")
    quantization = next(it for it in facts.checkpoints if it.is_default).quantization
    layout = Layout(data_parallel_size=8, expert_parallel=expert_parallel)
    h200 = catalog.gpu("h200")
    apart, joined = (
        rank_weights(
            facts.architecture, layout=layout, quantization=quantization, device=device_of(h200, rules_for(engine))
        ).param_bytes
        for engine in ("vllm", "sglang")
    )

    head, dense, shared = 129_280 * 7_168 * 2, 3 * 3 * 7_168 * 18_432, 58 * 3 * 7_168 * 2_048
    assert apart - joined == pytest.approx(7 / 8 * (head + (dense + shared) * (1 + 4 / 128**2)), rel=1e-3)


@pytest.mark.parametrize("model", ["deepseek-v3", "gpt-oss-120b", "gemma-3-27b", "qwen3-next-80b-a3b"])
@pytest.mark.parametrize(
    "layout", [Layout(tensor_parallel_size=4), Layout(data_parallel_size=8, expert_parallel=True)], ids=str
)
def test_a_layers_matrices_are_the_same_ones_on_any_layout(catalog: Snapshot, model: str, layout: Layout) -> None:
    """Layers that are stored alike on one GPU are so on every layout: they are added up once."""
    architecture = catalog.model(model).architecture

    for layer in architecture.layers:
        alone, spread = (layer_matrices(architecture, layer, each) for each in (Layout(), layout))
        assert [matrix.module for matrix in alone] == [matrix.module for matrix in spread]


def test_stages_hold_all_layers_once(catalog: Snapshot) -> None:
    """A stage holds its own layers: first and last ones, which differ, among them."""
    model = catalog.model("deepseek-v3")
    quantization = model.checkpoints[0].quantization
    whole, halves = (
        rank_weights(model.architecture, layout=Layout(pipeline_parallel_size=stages), quantization=quantization)
        for stages in (1, 2)
    )

    # 58 layers of experts, of which either half has 28 or more behind three dense ones.
    assert halves.by_component["experts"] * 2 >= whole.by_component["experts"]
    assert halves.by_component["experts"] * 58 % (whole.by_component["experts"]) == 0


def test_a_checkpoint_in_mxfp8_is_as_large_as_its_folder(catalog: Snapshot) -> None:
    """SemiAnalysisAI/InferenceX, benchmarks/multi_node (MiniMax-M3 on MI355X): "MiniMax-M3 MXFP8 (~414 GB)", by du."""
    facts = catalog.model("minimax-m3")
    stored = next(each for each in facts.checkpoints if each.hf_id == "MiniMaxAI/MiniMax-M3-MXFP8")

    weights = rank_weights(facts.architecture, layout=Layout(), quantization=stored.quantization)

    assert weights.loaded_bytes / (1 << 30) == pytest.approx(414, rel=0.002)


def test_layers_without_a_cache_of_their_own_projected_keys_and_values_before_vllm_0_30(catalog: Snapshot) -> None:
    """A published start-up of google/gemma-4-E4B-it on vLLM 0.22.1: "Model loading took 15.18 GiB".

    0.29 has `QKVParallelLinear` in every layer of `models/gemma4.py` and `models/gemma3n.py`, 0.30 `q_proj` alone where
    another layer's cache is read: 18 of 42 layers here, 2 heads of 256, of 512 in three of them.
    """
    model, gpu = catalog.model("gemma-4-e4b"), catalog.gpu("l40s")
    before, since = (
        rank_weights(
            model.architecture,
            layout=Layout(),
            quantization=model.checkpoints[0].quantization,
            device=device_of(gpu, rules_for("vllm", version)),
        ).loaded_bytes
        for version in ("0.22.1", "0.30.0")
    )

    assert before / (1 << 30) == pytest.approx(15.18, rel=0.005)
    # Keys and values, 2,560 wide, in two bytes; the allocator rounds up.
    assert before - since == pytest.approx((15 * 256 + 3 * 512) * 2 * 2 * 2_560 * 2, rel=0.2)


def test_sglang_copies_an_unquantized_up_projection_of_latents(catalog: Snapshot) -> None:
    """SGLang 0.5.15 `deepseek_weight_loader.py`: `w_kc` and `w_vc` are made contiguous, and kv_b_proj stays.

    Kimi K2.5, whose attention is not quantized: 61 layers of 64 heads with 128 + 128 rows of 512 bf16 values.
    """
    model, layout = catalog.model("kimi-k2.5"), Layout(data_parallel_size=8)
    quantization = next(each for each in model.checkpoints if each.is_default).quantization
    device = device_of(catalog.gpu("h200"), rules_for("sglang", "0.5.15"))
    plain = replace(device, plan=replace(device.plan, copies_absorbed=False))
    own, without = (
        rank_weights(model.architecture, layout=layout, quantization=quantization, device=each).by_component[
            "attention"
        ]
        for each in (device, plain)
    )

    assert own - without == 61 * 64 * (128 + 128) * 512 * 2


@pytest.mark.parametrize(
    ("model", "gpu", "version", "layout", "printed_gib"),
    [
        # `--tp 4 --dp 4` on four MI300X with experts in fp8: "quant=fp8, fmt=e4m3 ... mem usage=73.43 GB".
        ("deepseek-v4-flash-base", "mi300x", "0.5.12", Layout(data_parallel_size=4), 73.43),
    ],
)
def test_sglang_unpacks_what_deepseek_v4_multiplies_in_groups(
    catalog: Snapshot, model: str, gpu: str, version: str, layout: Layout, printed_gib: float
) -> None:
    facts = catalog.model(model)
    weights = rank_weights(
        facts.architecture, layout=layout, quantization=facts.checkpoints[0].quantization,
        device=device_of(catalog.gpu(gpu), rules_for("sglang", version)),
    )  # fmt: skip

    assert weights.loaded_bytes / 2**30 == pytest.approx(printed_gib, rel=0.005)


def test_marlin_s_kernels_kept_the_loaded_scales_of_experts_in_fp4(catalog: Snapshot) -> None:
    """DeepSeek-V4-Pro on eight H200: "mem usage=125.65 GB" (SemiAnalysisAI/InferenceX issue 2128).

    FlashInfer's kernels run there instead, where experts are whole tiles: SGLang's recipe has 0.83 of memory, beside
    drafts. Since 0.5.16 neither keep them (`layers/quantization/marlin_utils_fp4.py`).
    """
    facts = catalog.model("deepseek-v4-pro")

    def loaded(gpu: str, version: str, ranks: int, tile: int | None = None) -> int:
        device = device_of(catalog.gpu(gpu), rules_for("sglang", version))
        marlin = device if tile is None else replace(device, wide_scales_tile=tile)
        layout, quantization = Layout(tensor_parallel_size=ranks), facts.checkpoints[0].quantization
        return rank_weights(facts.architecture, layout=layout, quantization=quantization, device=marlin).loaded_bytes

    # One fp32 scale for 32 of 193 billion weights; 61 projections of 2,048 x 4,096 in two bytes instead of one.
    scales = 61 * 384 * 3 * 7_168 * 384 // 32 * 4
    assert loaded("h200", "0.5.15", 8, 1 << 30) / 2**30 == pytest.approx(125.65, rel=0.005)
    assert loaded("h200", "0.5.15", 8, 1 << 30) - loaded("h200", "0.5.15", 8) == scales
    halves = loaded("h100", "0.5.15", 16) - loaded("h100", "0.5.16", 16)  # 192 columns on each, and what is rounded up
    assert halves == pytest.approx(scales / 2, rel=0.002)
    assert loaded("rtx-pro-6000", "0.5.15", 8) - loaded("rtx-pro-6000", "0.5.16", 8) == scales
    assert loaded("b200", "0.5.15", 8) == loaded("h200", "0.5.15", 8) - 61 * 2_048 * 4_096


def test_scales_of_fp4_experts_lie_there_twice(catalog: Snapshot) -> None:
    """SGLang 0.5.23's class of MiniMax-M2.7-NVFP4 has 74,369,026,544 bytes on each of two H100, swizzled scales too."""
    model = catalog.model("minimax-m2.7")
    parts = rank_weights(
        model.architecture,
        layout=Layout(tensor_parallel_size=2),
        quantization=next(each for each in model.checkpoints if each.weight_format == "nvfp4").quantization,
        device=device_of(catalog.gpu("h100"), rules_for("sglang", "0.5.23")),
    ).by_component

    assert sum(parts.values()) - parts["rotary_tables"] - parts["allocator_rests"] == 74_369_026_544
