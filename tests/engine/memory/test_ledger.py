"""The ledger against start-ups that people published: KV cache left on one GPU, in GiB as printed."""

from dataclasses import replace
from statistics import mean, median
from typing import Any

import pytest

from service.calibration.fits.ledger import STARTUPS as STARTUP_FILES
from service.calibration.fits.ledger import fit, text_of
from service.calibration.logs.rows import Skipped
from service.calibration.startups import Comparison, compare_startup, resolve_startup
from service.catalog.engine_rules import all_rules, constants, rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules, batch_defaults, default_utilization
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.memory.ledger import memory_per_gpu, rules_of_model
from service.engine.memory.shared_pool import plan_kv_cache
from service.engine.memory.weights import rank_weights
from tests.conftest import REFEREE, referee_rows

GIB = 1 << 30
LEARNING = "public log of vLLM 0.24.0, Qwen2.5 on one RTX 4090"
# 0.85 of the 23.99 GiB that this machine reports is 0.864 of the catalog's RTX 3090.
SECOND_RUNNER = "public log of 2026-08-22 (vLLM 0.27.1), Qwen2.5-0.5B on 24 GB"
# Without a version; its activations are those of the sampler that 0.8 to 0.10 had.
PLANNER = "github.com/llm-d-incubation/llm-d-planner docs/empirical-vllm-memory-results.md"
# Logs of 0.19.0 with every term; the fused all-reduce's buffers are in the non-torch memory of several ranks.
TERMS = "github.com/llm-d-incubation/llm-d-planner, measured start-ups of vLLM 0.19.0"

# model, GPU, TP, version (None: not stated), utilization, sequences, logged GiB of cache, tolerance, where it is printed
STARTUPS = {
    "gpt-oss-20b, H100": ("gpt-oss-20b", "h100", 1, "0.10.2", 0.90, None, 50.28, 0.01, PLANNER),
    "Qwen3-0.6B, H100": ("qwen3-0.6b", "h100", 1, "0.10.2", 0.90, None, 64.45, 0.005, PLANNER),
    "Qwen3-32B, H100, leaves 4.5 GiB": ("qwen3-32b", "h100", 1, "0.10.2", 0.90, None, 4.45, 0.03, PLANNER),
    "Qwen2.5-14B, H100": (
        "qwen2.5-14b-instruct",
        "h100",
        1,
        "0.21.0",
        0.90,
        256,
        41.43,
        0.02,
        "published vLLM 0.21 log",
    ),
    "Llama-3.1-8B, H100": ("llama-3.1-8b", "h100", 1, "0.19.0", 0.95, None, 58.11, 0.003, TERMS),
    "Llama-3.1-8B, 4 x H100": ("llama-3.1-8b", "h100", 4, "0.19.0", 0.95, None, 67.44, 0.003, TERMS),
    "Qwen2.5-7B, 2 x H100": ("qwen2.5-7b-instruct", "h100", 2, "0.19.0", 0.95, None, 63.84, 0.003, TERMS),
    "gpt-oss-20b, H100, 0.19": ("gpt-oss-20b", "h100", 1, "0.19.0", 0.95, None, 58.47, 0.003, TERMS),
    "gemma-3-12b, H100": ("gemma-3-12b-it", "h100", 1, "0.19.0", 0.95, None, 47.72, 0.005, TERMS),
    "Qwen3-30B-A3B, H100": ("qwen3-30b-a3b", "h100", 1, "0.19.0", 0.95, None, 15.41, 0.005, TERMS),
    "Qwen2.5-7B, RTX 4090": ("qwen2.5-7b-instruct", "rtx-4090", 1, "0.24.0", 0.85, None, 4.45, 0.07, LEARNING),
    "Qwen2.5-0.5B, RTX 4090": ("qwen2.5-0.5b", "rtx-4090", 1, "0.24.0", 0.85, None, 18.08, 0.03, LEARNING),
    "Qwen2.5-0.5B, second runner": ("qwen2.5-0.5b", "rtx-3090", 1, "0.27.1", 0.864, None, 18.65, 0.03, SECOND_RUNNER),
    "Llama-3.1-8B, A100": ("llama-3.1-8b", "a100", 1, "0.31.0", 0.92, None, 56.21, 0.02, "published vLLM 0.31 log"),
    "Qwen3-Next-80B, 2 x H200": ("qwen3-next-80b-a3b", "h200", 2, "0.10.2", 0.90, None, 44.59, 0.005, "published log"),
}


@pytest.mark.parametrize(
    ("model", "gpu", "tp", "version", "utilization", "sequences", "logged_gib", "tolerance", "printed"),
    STARTUPS.values(),
    ids=STARTUPS,
)
def test_the_cache_is_what_the_log_says(
    catalog: Snapshot,
    model: str,
    gpu: str,
    tp: int,
    version: str | None,
    utilization: float,
    sequences: int | None,
    logged_gib: float,
    tolerance: float,
    printed: str,
) -> None:
    facts, device, rules = catalog.model(model), catalog.gpu(gpu), rules_for("vllm", version)
    own = next(checkpoint for checkpoint in facts.checkpoints if checkpoint.is_default)
    layout = Layout(tensor_parallel_size=tp)
    batched, default_sequences = batch_defaults(rules, device)

    memory = memory_per_gpu(
        architecture=facts.architecture,
        rank_weight_bytes=rank_weights(
            facts.architecture, layout=layout, quantization=own.quantization, device=device_of(device, rules)
        ).loaded_bytes,
        gpu=device,
        layout=layout,
        settings=EngineSettings(
            gpu_memory_utilization=utilization,
            kv_cache_dtype="auto",
            max_model_len=16_000,
            max_num_batched_tokens=batched,
            max_num_seqs=sequences or default_sequences,
        ),
        rules=rules,
    )

    assert memory.kv_cache_bytes / GIB == pytest.approx(logged_gib, rel=tolerance), printed


def test_a_rank_more_than_kv_heads_holds_no_token_more(catalog: Snapshot) -> None:
    # Public logs of Qwen3-235B-A22B: 4 KV heads, so a rank keeps one head at TP4 and a copy of one at TP8:
    # 94 layers x 2 x 128 x 2 bytes = 47 KiB per token and GPU (8.11 GiB for 178,880 tokens at TP4).
    architecture, settings = catalog.model("qwen3-235b-a22b").architecture, with_batch(8_192)
    tokens = [
        plan_kv_cache(
            architecture,
            layout=Layout(tensor_parallel_size=tp),
            settings=settings,
            available_bytes=178_880 * 94 * 2 * 128 * 2,
        ).tokens
        for tp in (2, 4, 8)
    ]

    assert tokens == [178_880 // 2, 178_880, 178_880]


def test_recent_start_ups_are_met_within_the_limits(catalog: Snapshot) -> None:
    rows = [row for name in STARTUP_FILES for row in referee_rows(name)]
    recent = [it for row in rows for it in _recent_comparisons(row, catalog)]

    def errors(quantity: str, *, with_peers: bool | None = None) -> list[float]:
        chosen = [it for it, has_peers in recent if it.quantity == quantity and with_peers in (None, has_peers)]
        return [it.error_fraction for it in chosen]

    pools = errors("kv_cache_bytes")
    assert len(pools) >= 40
    assert median(map(abs, pools)) <= 0.005
    # One log of DeepSeek V4 apart, of which 2.6 GiB are not explained, and which is known.
    assert mean(sorted(map(abs, pools))[:-1]) <= 0.015
    assert sum(error <= 0 for error in pools) >= 0.8 * len(pools)
    assert median(map(abs, errors("kv_cache_bytes", with_peers=True))) <= 0.005
    assert median(map(abs, errors("cuda_graph_bytes"))) <= 0.2
    assert median(map(abs, errors("non_torch_bytes"))) <= 0.2
    # One log of Kimi-VL apart, whose ranks load 0.14 GiB that no rule explains.
    assert max(sorted(map(abs, errors("weight_bytes")))[:-1]) <= 0.0055


def _recent_comparisons(row: dict[str, Any], catalog: Snapshot) -> list[tuple[Comparison, bool]]:
    """Return the comparisons of a start-up of vLLM 0.10 or newer, and whether its ranks have peers."""
    startup = resolve_startup(row, catalog)
    if isinstance(startup, Skipped) or startup.rules.engine != "vllm" or not startup.is_recent:
        return []
    found = compare_startup(row, catalog)
    return [] if isinstance(found, Skipped) else [(it, startup.layout.tensor_parallel_size > 1) for it in found]


def sized(catalog: Snapshot, model: str, rules: EngineRules, gpu: Gpu, weights_gib: float, **settings: Any) -> float:
    """Return the cache of one GPU in GiB for weights as logged."""
    batched, sequences = batch_defaults(rules, gpu)
    memory = memory_per_gpu(
        architecture=catalog.model(model).architecture,
        rank_weight_bytes=round(weights_gib * GIB),
        gpu=gpu,
        layout=Layout(tensor_parallel_size=settings.pop("tensor_parallel_size", 1)),
        settings=EngineSettings(
            kv_cache_dtype="auto",
            **{
                "gpu_memory_utilization": default_utilization(rules, gpu),
                "max_model_len": 16_000,
                "max_num_batched_tokens": batched,
                "max_num_seqs": sequences,
                **settings,
            },
        ),
        rules=rules,
    )
    return memory.kv_cache_bytes / GIB


def test_sglang_takes_its_fraction_of_what_is_free_before_loading(catalog: Snapshot) -> None:
    # Public log of SGLang: Devstral-Small-2-24B AWQ on two RTX 3090, 22.91 GB free before loading,
    # 12.91 GB of weights, mem_fraction_static 0.92: K 4.08 GB, V 4.08 GB ("GB" is GiB there).
    found = sized(
        catalog,
        "mistral-small-24b-instruct-2501",
        rules_for("sglang"),
        catalog.gpu("rtx-3090"),
        12.91,
        tensor_parallel_size=2,
        gpu_memory_utilization=0.92,
        max_num_seqs=1,
    )

    assert found == pytest.approx(8.16, rel=0.02)


@pytest.mark.parametrize(
    ("version", "gpu", "utilization"),
    # SGLang's `server_args.py`, and `arg_groups/memory_hook.py` since 0.5.19, of each version: the fraction to three digits,
    # of the memory that `nvidia-smi` prints (`get_nvgpu_memory_capacity`)
    [
        ("0.5.23", "h100", 0.83),  # 512 + 1.5 x 8192 + 2 x 256 + 128 + 58 x 8 of 81,559 MiB
        ("0.5.23", "rtx-4090", 0.704),  # 512 + 1.5 x 4096 + 2 x 48 + 128 + 50 x 8 of 24,564 MiB
        ("0.5.19", "rtx-4090", 0.833),  # chunks of 2,048
        ("0.5.10", "h200", 0.903),
        ("0.5.9", "h100", 0.835),  # prompts are not captured
        ("0.5.4", "h200", 0.907),
        ("0.5.4", "a10g", 0.837),
        ("0.5.4", "a100-sxm-40gb", 0.833),
        ("0.5.3", "rtx-4090", 0.848),  # 16 captured batches, not 24
        ("0.5.2", "h100", 0.874),  # (9.5 + 0.5) GiB
        ("0.4.8", "b200", 0.821),  # 32 GiB
        ("0.4.6", "h100", 0.88),
        ("0.4.6", "h200", 0.872),  # 18 GiB
    ],
)
def test_sglang_reserves_by_version_and_memory(catalog: Snapshot, version: str, gpu: str, utilization: float) -> None:
    assert default_utilization(rules_for("sglang", version), catalog.gpu(gpu)) == utilization


def test_tensorrt_llm_takes_nine_tenths_of_what_is_free(catalog: Snapshot) -> None:
    # Public log of TensorRT-LLM 0.20: Llama-3.3-Nemotron-Super-49B on one H200, engine 95,201 MiB, default
    # fraction 0.9: 29.11 GiB available, 26.20 GiB for the cache.
    rules = rules_for("tensorrt-llm", "0.20.0")
    gpu = replace(catalog.gpu("h200"), memory_bytes=round(139.72 * GIB))
    found = sized(catalog, "llama-3.3-nemotron-super-49b-v1", rules, gpu, 95_201 / 1024)

    assert rules.default_gpu_memory_utilization == 0.9
    assert found == pytest.approx(26.20, rel=0.1)


def test_without_a_version_the_newest_rules_count(catalog: Snapshot) -> None:
    # Qwen3-32B on one H100 leaves 4.45 GiB with the sampler of vLLM 0.10; newer ones leave more.
    gpu, weights = catalog.gpu("h100"), 61.03
    pools = {
        version: sized(catalog, "qwen3-32b", rules_for("vllm", version), gpu, weights, gpu_memory_utilization=0.9)
        for version in (None, "0.33.0", "0.10.2")
    }

    assert pools[None] == pools["0.33.0"] > 5
    assert pools["0.10.2"] == pytest.approx(4.45, rel=0.05)


def test_the_first_versions_of_the_second_runner_estimate_no_graphs_for_dense_models(catalog: Snapshot) -> None:
    rules = rules_for("vllm", "0.27.1")

    assert rules_of_model(catalog.model("qwen3-8b").architecture, rules).graph_accounting == "outside"
    for model in ("qwen3-30b-a3b", "qwen3.6-27b"):  # experts; recurrent state
        assert rules_of_model(catalog.model(model).architecture, rules).graph_accounting == "inside"


def with_batch(tokens: int) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        max_model_len=16_000,
        max_num_batched_tokens=tokens,
        max_num_seqs=8,
    )


def test_every_constant_carries_its_evidence() -> None:
    for name, known in constants().items():
        assert known.note, name
        assert known.unit, name
        assert (known.sample_size == 0) == (known.error is None), name


def test_the_table_holds_what_the_logs_give(catalog: Snapshot) -> None:
    if not all((REFEREE / name).is_file() for name in STARTUP_FILES):
        pytest.skip("the referee's data is not on this machine")
    found = {it.name: it for it in fit(REFEREE, catalog)}

    assert set(found) == {name for name, known in constants().items() if known.sample_size}
    for name, it in found.items():
        known = constants()[name]
        assert (it.value, it.sample_size, it.error) == (known.value, known.sample_size, known.error), name
    assert all(name in text_of(found.values()) for name in constants())


def test_the_referee_is_there_in_ci() -> None:
    if not REFEREE.is_dir():
        pytest.skip("the referee's data is not on this machine")
    assert (REFEREE / "vllm_kv_oracle.jsonl").is_file()


def test_each_version_has_its_own_sampler_and_graphs() -> None:
    # FlashInfer samples up to 0.11.0 where somebody installed it, which the package alone does not; pull request 33538
    # brought another sampler; logs of 0.20.0 and 0.20.2 print "CUDA graph memory profiling is enabled", those of 0.19
    # that it will be.
    sampled = {
        rules_for("vllm", version).sampler_bytes_per_logit for version in ("0.8.5", "0.10.2", "0.11.0", "0.11.1")
    }

    assert sampled == {38}
    assert rules_for("vllm", "0.16.0").sampler_bytes_per_logit > rules_for("vllm", "0.17.0").sampler_bytes_per_logit
    assert rules_for("vllm", "0.19.1").graph_accounting == "outside"
    assert rules_for("vllm", "0.20.0").graph_accounting == "inside"


def test_versions_pick_their_row() -> None:
    assert rules_for("vllm").rules_version == "vllm-0.33"
    assert rules_for("vllm", "0.33.0").default_gpu_memory_utilization == 0.92
    assert rules_for("vllm", "0.25.1").default_gpu_memory_utilization == 0.92
    assert rules_for("vllm", "0.20.1").default_gpu_memory_utilization == 0.92
    assert rules_for("vllm", "0.19.1").default_gpu_memory_utilization == 0.90
    assert rules_for("vllm", "v0.11.0").graph_accounting == "outside"
    assert {row.engine for row in all_rules()} == {"vllm", "sglang", "tensorrt-llm"}


@pytest.mark.parametrize("version", ["0.1", "main", "", "x.y"])
def test_an_unknown_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidQuestionError, match="no rules"):
        rules_for("vllm", version)
