"""The ledger against start-ups that people published: KV cache left on one GPU, in GiB as printed."""

from statistics import median

import pytest

from service.calibration.startups import Comparison, compare_startup
from service.catalog.engine_rules import all_rules, rules_for
from service.catalog.snapshot import Snapshot
from service.engine.errors import InvalidQuestionError
from service.engine.inputs import EngineSettings, Layout
from service.engine.ledger import memory_per_gpu
from service.engine.rules import batch_defaults
from service.engine.weights import rank_weights
from tests.conftest import REFEREE, referee_rows

GIB = 1 << 30
PLANNER = "github.com/llm-d-incubation/llm-d-planner docs/empirical-vllm-memory-results.md"

# model, GPU, TP, version, utilization, sequences, logged GiB of cache, tolerance, where it is printed
STARTUPS = {
    "gpt-oss-20b, H100": ("gpt-oss-20b", "h100", 1, "0.11.0", 0.90, None, 50.28, 0.04, PLANNER),
    "Qwen3-0.6B, H100": ("qwen3-0.6b", "h100", 1, "0.11.0", 0.90, None, 64.45, 0.02, PLANNER),
    "Qwen3-32B, H100, leaves 4.5 GiB": ("qwen3-32b", "h100", 1, "0.11.0", 0.90, None, 4.45, 0.10, PLANNER),
    "Llama-3.1-8B, A100": ("llama-3.1-8b", "a100", 1, "0.31.0", 0.92, None, 56.21, 0.02, "published vLLM 0.31 log"),
    "Qwen3-Next-80B, 2 x H200": ("qwen3-next-80b-a3b", "h200", 2, "0.11.0", 0.90, None, 44.59, 0.06, "published log"),
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
    version: str,
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
        rank_weight_bytes=rank_weights(facts.architecture, layout=layout, quantization=own.quantization).loaded_bytes,
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


def test_recent_start_ups_are_met_within_the_limits(catalog: Snapshot) -> None:
    rows = referee_rows("vllm_startups.jsonl")
    found = [it for row in rows if isinstance(it := compare_startup(row, catalog), list)]
    recent = [it for comparisons in found for it in comparisons if it.quantity == "kv_cache_bytes" and _is_recent(it)]
    errors = sorted(abs(it.error_fraction) for it in recent)

    assert len(recent) >= 5
    assert median(errors) <= 0.03
    misses = [it for it in recent if it.error_fraction != 0]
    assert sum(it.error_fraction < 0 for it in misses) >= len(misses) / 2


def _is_recent(comparison: Comparison) -> bool:
    numbers = comparison.engine_version.split(".")
    return numbers[0] == "0" and len(numbers) > 1 and numbers[1].isdigit() and int(numbers[1]) >= 10


def test_the_referee_is_there_in_ci() -> None:
    if not REFEREE.is_dir():
        pytest.skip("the referee's data is not on this machine")
    assert (REFEREE / "vllm_kv_oracle.jsonl").is_file()


def test_versions_pick_their_row() -> None:
    assert rules_for("vllm").rules_version == "vllm-0.33"
    assert rules_for("vllm", "0.33.0").default_gpu_memory_utilization == 0.92
    assert rules_for("vllm", "0.25.1").default_gpu_memory_utilization == 0.90
    assert rules_for("vllm", "v0.11.0").graph_accounting == "outside"
    assert {row.engine for row in all_rules()} == {"vllm", "sglang", "tensorrt-llm"}


@pytest.mark.parametrize("version", ["0.1", "main", "", "x.y"])
def test_an_unknown_version_is_refused(version: str) -> None:
    with pytest.raises(InvalidQuestionError, match="no rules"):
        rules_for("vllm", version)
