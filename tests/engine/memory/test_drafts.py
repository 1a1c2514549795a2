"""Layers that draft, against vLLM 0.33's own planner."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.families import parse_architecture
from service.engine.formats.quantization import UNQUANTIZED
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout, SpeculativeMethod
from service.engine.memory.drafts import draft_head
from service.engine.memory.shared_pool import plan_kv_cache
from service.engine.memory.weights import rank_weights

POOL = 40 << 30
STEP_3_5 = {
    "architectures": ["Step3p5ForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 11264,
    "num_hidden_layers": 45,
    "vocab_size": 128896,
    "num_attention_heads": 64,
    "num_attention_groups": 8,
    "head_dim": 128,
    "max_position_embeddings": 262144,
    "layer_types": ["full_attention", *["sliding_attention"] * 3] * 12,
    "sliding_window": 512,
    "moe_num_experts": 288,
    "moe_top_k": 8,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
    "moe_layers_enum": ",".join(str(index) for index in range(3, 45)),
    "use_head_wise_attn_gate": True,
    "use_qk_norm": True,
    "attention_other_setting": {"attention_type": "sliding_attention", "num_attention_heads": 96},
    "num_nextn_predict_layers": 3,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}

# model, method, drafted tokens, TP, decode-context ranks, cache: what vLLM 0.33 computes on H100 for 8,192 tokens and a
# pool of 40 GiB with both models instantiated (bytes per block, blocks, tokens), and the bytes of the draft's own
# parameters on a rank: all but the embedding table and output head it shares with the model.
DRAFTS: dict[tuple[str, SpeculativeMethod, int, int, int, KvCacheDtype], tuple[int, int, int, int]] = {
    ("deepseek-v3", "mtp", 1, 1, 1, "bf16"): (1_142_784, 37_583, 601_328, 11_717_511_392),
    ("deepseek-v3", "mtp", 1, 8, 1, "bf16"): (1_142_784, 37_583, 601_328, 1_661_047_968),
    ("deepseek-v3", "mtp", 3, 8, 1, "bf16"): (1_142_784, 37_583, 601_328, 1_661_047_968),
    ("deepseek-v3", "mtp", 1, 8, 1, "fp8"): (2_285_568, 18_791, 1_202_624, 1_661_047_968),
    ("deepseek-v3", "mtp", 1, 8, 4, "bf16"): (1_142_784, 37_583, 2_405_312, 1_661_047_968),
    ("deepseek-v3.2", "mtp", 1, 8, 1, "bf16"): (5_094_912, 8_429, 539_456, 1_676_387_488),
    ("deepseek-v3.2", "mtp", 1, 8, 1, "fp8"): (3_126_784, 13_736, 879_104, 1_676_387_488),
    ("deepseek-v4-flash", "mtp", 2, 4, 1, "bf16"): (1_002_240, 42_853, 104_355, 932_496_108),
    ("glm-4.5-air", "mtp", 1, 1, 1, "bf16"): (3_080_192, 13_943, 223_088, 4_751_168_000),
    ("glm-4.5-air", "mtp", 1, 2, 1, "bf16"): (1_540_096, 27_887, 446_192, 2_410_207_744),
    ("glm-4.5-air", "mtp", 1, 4, 1, "bf16"): (770_048, 55_775, 892_400, 1_239_727_616),
    ("glm-4.5-air", "mtp", 1, 8, 1, "bf16"): (385_024, 111_550, 1_784_800, 654_487_552),
    ("glm-4.5", "mtp", 1, 8, 1, "bf16"): (761_856, 56_375, 902_000, 1_091_885_696),
    ("glm-5", "mtp", 1, 8, 1, "bf16"): (6_491_904, 6_615, 423_360, 2_667_777_024),
    ("mimo-7b", "mtp", 1, 1, 1, "bf16"): (2_424_832, 17_712, 283_392, 421_580_800),
    ("mimo-7b", "mtp", 1, 2, 1, "bf16"): (1_212_416, 35_424, 566_784, 244_365_312),
    ("mimo-7b", "mtp", 1, 4, 1, "bf16"): (606_208, 70_849, 1_133_584, 155_757_568),
    ("mimo-7b", "mtp", 1, 8, 1, "bf16"): (303_104, 141_699, 2_267_184, 111_453_696),
    ("mimo-v2-flash", "mtp", 1, 4, 1, "bf16"): (184_320, 233_016, 676_663, 149_479_080),
    ("nemotron-3-super-120b-a12b", "mtp", 2, 2, 1, "bf16"): (19_390_464, 2_214, 671_744, 2_952_833_024),
    ("qwen3-next-80b-a3b-instruct", "mtp", 1, 1, 1, "bf16"): (15_335_424, 2_800, 849_540, 3_300_942_848),
    ("qwen3-next-80b-a3b-instruct", "mtp", 2, 2, 1, "bf16"): (7_667_712, 5_601, 1_529_446, 1_651_532_800),
    ("qwen3-next-80b-a3b-instruct", "mtp", 2, 4, 1, "bf16"): (4_259_840, 10_082, 2_014_432, 827_876_352),
    ("qwen3-next-80b-a3b-instruct", "mtp", 3, 8, 1, "bf16"): (2_555_904, 16_804, 2_256_694, 416_048_128),
    ("qwen3-next-80b-a3b-instruct", "mtp", 2, 8, 2, "bf16"): (2_555_904, 16_804, 3_720_496, 416_048_128),
    ("qwen3.5-27b", "mtp", 3, 1, 1, "bf16"): (57_933_824, 741, 216_795, 849_398_784),
    ("qwen3.5-27b", "mtp", 1, 4, 1, "bf16"): (14_483_456, 2_965, 1_104_058, 212_388_864),
    ("qwen3.5-35b-a3b", "mtp", 2, 2, 1, "fp8"): (12_255_232, 3_504, 1_510_777, 845_177_856),
    ("minimax-m3", "mtp", 1, 8, 1, "bf16"): (6_488_064, 6_619, 847_232, 14_082_292_224),
    ("llama-3.1-8b-instruct", "eagle3", 3, 1, 1, "bf16"): (2_162_688, 19_859, 317_744, 849_635_328),
    ("llama-3.1-8b-instruct", "eagle3", 3, 2, 1, "bf16"): (1_081_344, 39_718, 635_488, 475_293_696),
    ("llama-3.1-8b-instruct", "eagle3", 3, 4, 1, "bf16"): (540_672, 79_437, 1_270_992, 288_122_880),
    ("llama-3.1-8b-instruct", "eagle3", 3, 8, 1, "bf16"): (270_336, 158_875, 2_542_000, 194_537_472),
    ("llama-3.1-8b-instruct", "eagle", 5, 2, 1, "bf16"): (1_081_344, 39_718, 635_488, 285_220_864),
    ("gpt-oss-120b", "eagle3", 3, 2, 1, "bf16"): (311_296, 137_970, 1_102_683, 283_025_920),
    ("qwen3-30b-a3b", "eagle3", 3, 2, 1, "bf16"): (802_816, 53_498, 855_968, 158_083_072),
    ("qwen3.5-27b", "ngram", 3, 1, 1, "bf16"): (54_525_952, 787, 230_253, 0),
}

# Step 3.5 has three modules, which every sliding window outside keeps tokens for when several of them draft.
# TP, drafted tokens: the same figures for 32,768 tokens.
STEP_ROWS = {
    (1, 1): (786_432, 54_613, 342_893, 4_856_342_016),
    (1, 3): (786_432, 54_613, 342_696, 4_856_342_016),
    (4, 6): (196_608, 218_453, 1_370_790, 1_365_173_760),
    (8, 12): (98_304, 436_906, 2_741_580, 783_312_384),
}


def settings(
    dtype: KvCacheDtype, *, max_model_len: int = 8_192, drafted: int = 0, method: SpeculativeMethod | None = None
) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.92,
        kv_cache_dtype=dtype,
        max_model_len=max_model_len,
        max_num_batched_tokens=8_192,
        max_num_seqs=1_024,
        num_speculative_tokens=drafted,
        speculative_method=method,
    )


@pytest.mark.parametrize(("case", "expected"), DRAFTS.items(), ids=lambda it: "-".join(map(str, it)))
def test_a_draft_takes_what_the_engine_gives_it(
    catalog: Snapshot,
    case: tuple[str, SpeculativeMethod, int, int, int, KvCacheDtype],
    expected: tuple[int, int, int, int],
) -> None:
    model, method, drafted, tp, dcp, dtype = case
    facts = catalog.model(model)
    layout = Layout(tensor_parallel_size=tp, decode_context_parallel_size=dcp)
    quantization = next(it for it in facts.checkpoints if it.is_default).quantization

    cache = plan_kv_cache(
        facts.architecture,
        layout=layout,
        settings=settings(dtype, drafted=drafted, method=method),
        available_bytes=POOL,
    )
    head = draft_head(facts.architecture, method)
    without = rank_weights(facts.architecture, layout=layout, quantization=quantization).param_bytes
    with_head = rank_weights(facts.architecture, layout=layout, quantization=quantization, draft=head).param_bytes

    assert (cache.bytes_per_block, cache.num_gpu_blocks, cache.tokens) == expected[:3]
    assert with_head - without == expected[3]


@pytest.mark.parametrize(
    ("tp", "expected"), [(1, (3_211_264, 13_374, 213_984)), (2, (1_605_632, 26_749, 427_984))]
)  # fmt: skip
def test_beside_drafts_layers_that_attend_in_chunks_keep_every_token(
    catalog: Snapshot, tp: int, expected: tuple[int, int, int]
) -> None:
    cache = plan_kv_cache(
        catalog.model("llama-4-scout-17b-16e-instruct").architecture,
        layout=Layout(tensor_parallel_size=tp),
        settings=settings("bf16", drafted=3, method="eagle3"),
        available_bytes=POOL,
    )

    assert (cache.bytes_per_block, cache.num_gpu_blocks, cache.tokens) == expected


@pytest.mark.parametrize(("case", "expected"), STEP_ROWS.items(), ids=str)
def test_several_modules_take_turns(case: tuple[int, int], expected: tuple[int, int, int, int]) -> None:
    tp, drafted = case
    architecture, layout = parse_architecture(STEP_3_5), Layout(tensor_parallel_size=tp)

    cache = plan_kv_cache(
        architecture,
        layout=layout,
        settings=settings("bf16", drafted=drafted, method="mtp", max_model_len=32_768),
        available_bytes=POOL,
    )

    without = rank_weights(architecture, layout=layout, quantization=UNQUANTIZED).param_bytes
    with_modules = rank_weights(architecture, layout=layout, quantization=UNQUANTIZED, draft=architecture.mtp)

    assert (cache.bytes_per_block, cache.num_gpu_blocks, cache.tokens) == expected[:3]
    assert with_modules.param_bytes - without == expected[3]


def test_a_logged_start_up_with_drafts(catalog: Snapshot) -> None:
    # vLLM 0.27.2, Qwen3.8-27B (layers like Qwen3.5-27B's) on 2 GPUs, MTP with 3 tokens, fp8 cache, 102,400 tokens, pool
    # pinned at 2.3e9 bytes: "block size 1600", "GPU KV cache size: 106,288 tokens". A request held 64 blocks and, without
    # the checkpoint that 0.33 keeps besides, 5 states in each of 3 groups: 102,400 x 82 / 79 tokens.
    cache = plan_kv_cache(
        catalog.model("qwen3.5-27b").architecture,
        layout=Layout(tensor_parallel_size=2),
        settings=settings("fp8", drafted=3, method="mtp", max_model_len=102_400),
        available_bytes=2_300_000_000,
    )

    assert cache.block_size == 1_600
    assert int(102_400 * cache.num_gpu_blocks / 79) == 106_288


def test_more_tokens_than_modules_are_a_multiple_of_them(client: TestClient) -> None:
    # vLLM 0.33: "num_speculative_tokens:4 must be divisible by n_predict=3"
    refused = client.post(
        "/capacity",
        json={"model_config": STEP_3_5, "gpu": "h100", "tensor_parallel_size": 8, "num_speculative_tokens": 4,
              "speculative_acceptance_fraction": 0.7},
    )  # fmt: skip

    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "num_speculative_tokens"


@pytest.mark.parametrize(("model", "method"), [("llama-3.1-8b", "mtp"), ("kimi-k2-instruct", "eagle3")])
def test_a_draft_that_does_not_exist_is_refused(catalog: Snapshot, model: str, method: SpeculativeMethod) -> None:
    with pytest.raises(InvalidQuestionError, match=r"prediction modules|EAGLE heads"):
        draft_head(catalog.model(model).architecture, method)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "kimi-k2-instruct", "deepseek-v3.1", "gpt-oss-120b"])
def test_whoever_is_named_instead_does_draft(catalog: Snapshot, model: str) -> None:
    """Kimi K2 has neither modules nor heads that follow from its config: each was named in the other's place."""
    architecture = catalog.model(model).architecture
    every: tuple[SpeculativeMethod, ...] = ("mtp", "eagle", "eagle3", "ngram")
    named, drafting = set[str](), set[str]()
    for method in every:
        try:
            draft_head(architecture, method)
            drafting.add(method)
        except InvalidQuestionError as error:
            named |= set(str(error.accepted).replace(" or ", ", ").split(", "))

    assert named == drafting


def test_the_drafter_is_the_models_own_where_it_has_one(client: TestClient) -> None:
    asked: dict[str, Any] = {"gpu": "h200", "num_speculative_tokens": 2, "speculative_acceptance_fraction": 0.7}
    methods = {}
    for model, ranks in (("qwen3.5-27b", 2), ("llama-3.1-8b", 1)):
        response = client.get("/capacity", params={**asked, "model": model, "tensor_parallel_size": ranks})
        assert response.status_code == 200, response.text
        answer = response.json()
        noted = {it["name"]: it for it in answer["assumptions"]}["speculative_method"]
        methods[model] = (noted["value"], noted["origin"])

    assert methods == {"qwen3.5-27b": ("mtp", "default"), "llama-3.1-8b": ("eagle3", "default")}


def test_the_flags_name_the_models_own_drafter(client: TestClient) -> None:
    answer = client.get(
        "/capacity",
        params={"model": "mimo-7b", "gpu": "h100", "num_speculative_tokens": 1, "speculative_acceptance_fraction": 0.8},
    ).json()

    flags = answer["engine_args"]
    stated = json.loads(flags[flags.index("--speculative-config") + 1])
    assert stated == {"method": "mtp", "num_speculative_tokens": 1}
    assert not any("drafter" in warning for warning in answer["warnings"])


def test_a_draft_that_nobody_tells_of_fp8_keeps_the_models_dtype(client: TestClient) -> None:
    """K-EXAONE on eight H100 with 40 GiB and MTP, as vLLM 0.33's own planner has it: 49 groups of one layer."""
    asked: dict[str, str | float] = {
        "model": "k-exaone-236b-a23b",
        "gpu": "h100",
        "tensor_parallel_size": 8,
        "kv_cache_dtype": "fp8",
        "kv_cache_memory_bytes": 40 * 2**30,
        "max_model_len": 32_768,
        "max_num_batched_tokens": 8_192,
        "max_num_seqs": 1_024,
        "speculative_method": "mtp",
        "num_speculative_tokens": 1,
        "speculative_acceptance_fraction": 0.7,
    }

    cache = client.get("/capacity", params=asked).json()["kv_cache"]

    assert (cache["num_gpu_blocks"], cache["tokens"]) == (5_242_880, 5_379_973)
