"""DeepSeek V4.1 Flash, against what its files hold and what start-ups on Hopper and Blackwell printed.

Start-up: vLLM 0.31.1rc1.dev50 on eight H100, TP 8 with expert parallelism, 262,144 tokens, no prefix caching, language
model only: "36.32 GiB" of weights, "29.14 GiB" of cache a GPU, "GPU KV cache size: 9,092,347 tokens", "groups 32 x7, 64,
8" (github.com/tant2tls/Deepseek-serving).
"""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.arithmetic import GIB
from service.engine.engines.device import device_of
from service.engine.errors import UnsupportedLayoutError
from service.engine.facts import text_only
from service.engine.families import parse_architecture
from service.engine.fleet.arguments import start_of
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.staged import check_stages
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.drafts import drafter_fraction
from service.engine.memory.parameters import num_parameters
from service.engine.memory.plan import MemoryPlan, memory_plan
from service.engine.memory.shared_pool import plan_kv_cache
from tests.engine.families.changed import refused_field

MODEL = "deepseek-v4.1-flash"
EIGHT = Layout(tensor_parallel_size=8, expert_parallel=True)
PAIR = Layout(tensor_parallel_size=2)
PRINTED = EngineSettings(
    gpu_memory_utilization=0.9,
    kv_cache_dtype="fp8",
    max_model_len=262_144,
    max_num_batched_tokens=8_192,
    max_num_seqs=64,
    enable_prefix_caching=False,
    is_text_only=True,
)
DRAFTING = replace(
    PRINTED,
    max_model_len=1_048_576,
    max_num_batched_tokens=4_096,
    num_speculative_tokens=5,
    speculative_method="mtp",
)


def planned(catalog: Snapshot, gpu: str, version: str, layout: Layout, settings: EngineSettings) -> MemoryPlan:
    model = text_only(catalog.model(MODEL))
    rules = rules_for("vllm", version)
    return memory_plan(
        model,
        model.checkpoints[0],
        catalog.gpu(gpu),
        layout,
        settings,
        rules,
        input_tokens=1_000,
        output_tokens=100,
        shorten_to_fit=False,
    )


def test_parameters_are_those_of_its_files(catalog: Snapshot) -> None:
    """552 billion and 196 billion by its card; 763.21 billion in its files with the stages that draft.

    The Register of 11 September 2026 prints 763 billion, and the hub's "F8_E4M3" tables of 384,006,168 and
    384,016,682 rows of 256.
    """
    architecture = catalog.model(MODEL).architecture
    assert architecture.mtp is not None
    drafting = sum(it.elements for it in draft_matrices(architecture.mtp, Layout()))

    assert architecture.hosted_parameters == (384_006_168 + 384_016_682) * 256
    assert num_parameters(architecture) / 1e9 == pytest.approx(552 + 196.6, rel=0.001)
    assert (num_parameters(architecture) + drafting) / 1e9 == pytest.approx(763.21, abs=0.005)


def test_a_rank_of_eight_loads_what_a_start_up_printed(catalog: Snapshot) -> None:
    memory = planned(catalog, "h100", "0.31", EIGHT, PRINTED).memory

    assert memory.weight_bytes / GIB == pytest.approx(36.32, rel=0.005)
    assert memory.kv_cache_bytes / GIB == pytest.approx(29.14, rel=0.03)


def test_the_pool_holds_the_tokens_that_a_start_up_printed(catalog: Snapshot) -> None:
    # 267,626 blocks, 7,716 for one request, of three latents and keys for two tokens and one of each for every token,
    # in whole rows of 576 bytes.
    block = 3 * (19_008 + 4_608) + 37_440 + 8_640
    available_bytes = 267_626 * block
    assert available_bytes / GIB == pytest.approx(29.14, abs=0.005)

    architecture = catalog.model(MODEL).architecture
    device = device_of(catalog.gpu("h100"), rules_for("vllm", "0.31"))
    pool = plan_kv_cache(architecture, layout=EIGHT, settings=PRINTED, available_bytes=available_bytes, device=device)
    groups = shape_of(architecture, EIGHT, PRINTED, device).groups

    assert (pool.block_size, pool.tokens) == (64, 9_092_347)
    assert sorted(len(group.specs) for group in groups) == [3, 5, 5, 6, 6, 6, 6, 6, 8]


def test_two_b200_hold_the_tokens_that_a_start_up_printed(catalog: Snapshot) -> None:
    """SemiAnalysisAI/InferenceX pull request 3310: "21.5 GiB / 6.18M tokens of KV", of both, with drafts of five."""
    architecture = catalog.model(MODEL).architecture
    device = device_of(catalog.gpu("b200"), rules_for("vllm", "0.30"))
    pool = plan_kv_cache(
        architecture, layout=PAIR, settings=DRAFTING, available_bytes=int(21.5 * GIB / 2), device=device
    )

    assert (pool.block_size, round(pool.tokens / 1e6, 2)) == (128, 6.18)


def test_two_gb200_load_what_a_start_up_printed_with_the_stages_that_draft(catalog: Snapshot) -> None:
    # SemiAnalysisAI/InferenceX pull request 3320: "weights are ~145 GiB per GPU".
    memory = planned(catalog, "gb200", "0.30", PAIR, DRAFTING).memory

    assert memory.weight_bytes / GIB == pytest.approx(145, rel=0.01)


def test_a_past_in_fp4_came_with_a_version_and_whole_records_with_another(catalog: Snapshot) -> None:
    # `attention.py` of 0.30 (`kv_bytes_per_token`: 528), 0.31 (288), 0.33 (`packed_block_stride_alignment`).
    architecture, gpu = catalog.model(MODEL).architecture, catalog.gpu("b200")
    blocks = [
        shape_of(architecture, PAIR, PRINTED, device_of(gpu, rules_for("vllm", version))).bytes_per_block
        for version in ("0.30", "0.31", "0.33")
    ]

    beside = 3 * 8_704 + 128 * 132
    assert blocks == [128 * 528 * 5 // 2 + beside, 128 * 288 * 5 // 2 + beside, 43 * 3_168]


def test_stages_begin_where_a_source_does(catalog: Snapshot) -> None:
    # `attention.py`: "PP splits inside a v4.1 kv-sharing group are not supported."
    architecture = catalog.model(MODEL).architecture
    device = device_of(catalog.gpu("h200"), rules_for("vllm"))

    check_stages(architecture, Layout(pipeline_parallel_size=2), device)
    with pytest.raises(UnsupportedLayoutError, match="layer 10 reads that of layer 8"):
        check_stages(architecture, Layout(pipeline_parallel_size=4), device)


def test_all_tokens_of_a_step_are_drafted_at_once_and_the_command_says_how(catalog: Snapshot) -> None:
    architecture = catalog.model(MODEL).architecture
    start = start_of(planned(catalog, "b200", "0.33", PAIR, DRAFTING), StatedSettings())

    assert DRAFTING.num_speculative_tokens * drafter_fraction(architecture, DRAFTING) == pytest.approx(3 / 40)
    assert start.drafter == "dspark"


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"compress_ratios": [0, 0, 4, *[2] * 17, *[1] * 20]}, "compress_ratios"),
        ({"compress_ratios": [0, 0]}, "compress_ratios"),
        ({"compress_ratios": [0, *[2] * 19, *[1] * 20]}, "kv_source_layer_ids"),
        ({"kv_source_layer_ids": [2, 8, 14]}, "kv_source_layer_ids"),
        ({"kv_source_layer_ids": [2, 5, 8, 14, 20]}, "index_source_layer_ids"),
        ({"index_source_layer_ids": [8, 14, 20]}, "index_source_layer_ids"),
        ({"index_topk": None}, "index_topk"),
        ({"engram_layer_ids": [1, 40]}, "engram_layer_ids"),
        ({"engram_num_embeddings": [384_006_168]}, "engram_num_embeddings"),
        ({"engram_num_embeddings": [384_006_168, -1]}, "engram_num_embeddings"),
        ({"engram_n_heads": 10**9}, "engram_n_heads"),
        ({"engram_max_ngram_size": 1}, "engram_n_heads"),
    ],
)
def test_what_the_engine_does_not_build_is_refused_by_name(
    catalog: Snapshot, changed: dict[str, Any], field: str
) -> None:
    assert refused_field(catalog, MODEL, changed) == f"model_config.{field}"


def test_a_model_without_n_grams_and_drafts_is_read_as_well(catalog: Snapshot) -> None:
    config: dict[str, Any] = catalog.model_entries[MODEL].config
    text = {**config["text_config"], "engram_layer_ids": [], "num_nextn_predict_layers": 0}
    plain = parse_architecture({**config, "text_config": text})

    assert (plain.hosted_parameters, plain.mtp) == (0, None)
    assert {len(layer.mixers) for layer in plain.layers} == {1}
