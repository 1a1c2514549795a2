"""Qwen 3.8 Flash Next, against what the hub counts and what a start-up on eight H100 printed.

Start-up: vLLM 0.31.1rc1.dev50 on eight H100, TP 8 with expert parallelism, 262,144 tokens, no prefix caching, language
model only: "31.42 GiB" of weights and "37.37 GiB" of cache a GPU, "GPU KV cache size: 3,046,184 tokens", blocks of 400
tokens (github.com/tant2tls/Deepseek-serving).
"""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.classes import check_hosted
from service.engine.engines.device import REFERENCE, device_of
from service.engine.errors import RefusedStartError
from service.engine.facts import text_only
from service.engine.families import parse_architecture
from service.engine.fleet.checkpoints import loaded_checkpoint
from service.engine.fleet.questions import StatedSettings
from service.engine.formats.matrix import PADDING
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.parameters import num_parameters
from service.engine.memory.plan import memory_plan
from service.engine.memory.shared_pool import plan_kv_cache
from tests.engine.families.changed import refused_field

MODEL = "qwen3.8-flash-next"
EIGHT = Layout(tensor_parallel_size=8, expert_parallel=True)
PRINTED = EngineSettings(
    gpu_memory_utilization=0.9,
    kv_cache_dtype="bf16",
    max_model_len=262_144,
    max_num_batched_tokens=8_192,
    max_num_seqs=64,
    enable_prefix_caching=False,
    is_text_only=True,
)


def planned(catalog: Snapshot, available_bytes: int, settings: EngineSettings = PRINTED) -> tuple[int, int, list[int]]:
    """Return the block, the tokens of a rank's pool, and the layers of each group."""
    architecture = catalog.model(MODEL).architecture
    device = device_of(catalog.gpu("h100"), rules_for("vllm", "0.31"))
    pool = plan_kv_cache(architecture, layout=EIGHT, settings=settings, available_bytes=available_bytes, device=device)
    groups = shape_of(architecture, EIGHT, settings, device).groups
    return pool.block_size, pool.tokens, [len(group.specs) for group in groups]


def test_parameters_are_those_the_hub_counts_with_tower_tables_and_draft_layer(catalog: Snapshot) -> None:
    """huggingface.co/Qwen/Qwen3.8-Flash-Next, safetensors: BF16 179,999,981,424; 35 more are whole numbers.

    Two scales of the cache are in no file.
    """
    architecture = catalog.model(MODEL).architecture
    assert architecture.mtp is not None

    drafting = (it for it in draft_matrices(architecture.mtp, Layout()) if not it.module.endswith(PADDING))

    assert num_parameters(architecture) + sum(it.elements for it in drafting) == 179_999_981_424 + 2


def test_a_rank_of_eight_loads_what_a_start_up_printed(catalog: Snapshot) -> None:
    model, rules = text_only(catalog.model(MODEL)), rules_for("vllm", "0.31")

    plan = memory_plan(
        model,
        model.checkpoints[0],
        catalog.gpu("h100"),
        EIGHT,
        PRINTED,
        rules,
        input_tokens=1_000,
        output_tokens=100,
        shorten_to_fit=False,
    )

    assert plan.memory.weight_bytes / 2**30 == pytest.approx(31.42, rel=0.002)
    assert plan.memory.kv_cache_bytes / 2**30 == pytest.approx(37.37, rel=0.025)


def test_the_pool_holds_the_tokens_that_a_start_up_printed(catalog: Snapshot) -> None:
    # 7,681 blocks of 12 x 400 x (1,024 + 64) bytes, 661 for one request; two blocks less than the "37.37 GiB" of one
    # rank hold, as all follow the one that has least.
    available_bytes = 7_681 * 12 * 400 * (1_024 + 64)
    assert available_bytes / 2**30 == pytest.approx(37.37, abs=0.015)

    # "group block sizes": four of states, one of rings, one of keys and values.
    assert planned(catalog, available_bytes) == (400, 3_046_184, [10, 9, 9, 9, 12, 24])


def test_two_drafted_tokens_lengthen_blocks_as_a_start_up_printed(catalog: Snapshot) -> None:
    """vllm-project/vllm issue 54458, one GPU: "Setting attention block size to 1600 tokens", padded "by 0.88%".

    3,207,168 bytes of state and two drafted inputs of 20,480 are 0.88 % less than 1,600 tokens of 2,048 bytes.
    """
    architecture = catalog.model(MODEL).architecture
    settings = replace(PRINTED, enable_prefix_caching=True, num_speculative_tokens=2, speculative_method="mtp")
    shape = shape_of(architecture, Layout(), settings, device_of(catalog.gpu("h100"), rules_for("vllm")))
    states = {spec.state_bytes for group in shape.groups for spec in group.specs if spec.kind == "mamba"}

    assert shape.block_size == 1_600
    assert 1_600 * 2_048 / max(states) - 1 == pytest.approx(0.0088, abs=0.00005)


def test_more_drafted_tokens_than_rings_divide_blocks_do_not_start(catalog: Snapshot) -> None:
    # `qsa_cache.py`: "QSA ring capacity 12 must divide the attention block size 400".
    settings = replace(PRINTED, num_speculative_tokens=5, speculative_method="mtp")

    with pytest.raises(RefusedStartError, match="ring of 12") as refusal:
        planned(catalog, 1 << 35, settings)
    assert refusal.value.field == "num_speculative_tokens"


def test_tables_lie_in_the_host_of_newer_versions_of_one_engine_alone() -> None:
    check_hosted("Qwen4ExpForCausalLM", 51_200_245_760, REFERENCE, is_unified=False)

    sglang = replace(REFERENCE, name="sglang", is_vllm=False, is_vllm_on_cuda=False)
    older = replace(REFERENCE, plan=replace(REFERENCE.plan, version="0.29"))
    for device, is_unified, field in (
        (sglang, False, "engine"),
        (older, False, "engine_version"),
        (REFERENCE, True, "gpu"),
    ):
        with pytest.raises(RefusedStartError, match="51,200,245,760") as refusal:
            check_hosted("Qwen4ExpForCausalLM", 51_200_245_760, device, is_unified=is_unified)
        assert refusal.value.field == field


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"layer_types": ["linear_attention"] * 47 + ["sliding_attention"]}, "layer_types"),
        ({"layer_types": ["linear_attention"] * 47}, "layer_types"),
        ({"indexer_kv_heads": 2}, "indexer_kv_heads"),
        ({"indexer_n_heads": None}, "indexer_n_heads"),
        ({"hc_count": 1}, "hc_count"),
        ({"ple_layer_ids": [4]}, "ple_layer_ids"),
        ({"ple_layer_ids": [0]}, "ple_layer_ids"),
        ({"ple_embed_dim": 2_561}, "ple_embed_dim"),
        ({"heads_per_ngram": 10**9}, "heads_per_ngram"),
        ({"ngram_size": 1}, "heads_per_ngram"),
        ({"ngram_vocab_size_base": 10**15}, "ngram_vocab_size_base"),
        ({"indexer_compress_ratio": 3}, "indexer_compress_ratio"),
    ],
)
def test_what_the_engine_does_not_build_is_refused_by_name(
    catalog: Snapshot, changed: dict[str, Any], field: str
) -> None:
    assert refused_field(catalog, MODEL, changed) == f"model_config.{field}"


def test_a_model_without_n_grams_has_no_tables(catalog: Snapshot) -> None:
    config: dict[str, Any] = catalog.model_entries[MODEL].config
    plain = parse_architecture({**config, "text_config": {**config["text_config"], "ple_layer_ids": []}})

    assert plain.hosted_parameters == 0
    assert {len(layer.mixers) for layer in plain.layers} == {1}


def test_no_version_makes_fp8_of_the_tables_while_it_loads(catalog: Snapshot) -> None:
    # `ngram_embedding.py`: "Qwen4Exp PLE embedding only supports serialized FP8 checkpoints".
    model, gpu = catalog.model(MODEL), catalog.gpu("h100")
    device = device_of(gpu, rules_for("vllm"))

    with pytest.raises(RefusedStartError, match="makes no fp8") as refusal:
        loaded_checkpoint(model, gpu, device, StatedSettings(weight_format="fp8"))
    assert refusal.value.field == "weight_format"
    assert loaded_checkpoint(model, gpu, device, StatedSettings())[0].hf_id == "Qwen/Qwen3.8-Flash-Next"
