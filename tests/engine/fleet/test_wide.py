"""Where DeepEP is sized, and what is refused by name."""

from typing import Any

import pytest
from starlette.testclient import TestClient

from service.catalog.engine_flags import flags_of
from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights

GIB = 1 << 30
WIDE: dict[str, Any] = {
    "model": "deepseek-r1", "gpu": "h200", "engine": "sglang", "all2all_backend": "deepep", "input_tokens": 2000,
    "output_tokens": 1000, "request_rate_per_s": 20,
}  # fmt: skip


def test_ranks_hold_dense_parts_whole_and_experts_for_balance(catalog: Snapshot) -> None:
    """github.com/sgl-project/sglang/issues/6017, 9 May 2025, eight ranks of attention over DeepEP on 141 GB.

    "Load weight end. ... mem usage=105.59 GB.", GiB, with the thread's 32 redundant experts: four on each rank.
    """
    facts = catalog.model("deepseek-r1")
    device = device_of(catalog.gpu("h200"), rules_for("sglang"))
    layout = Layout(data_parallel_size=8, expert_parallel=True, all2all_backend="deepep")
    weights = rank_weights(
        facts.architecture, layout=layout, quantization=facts.checkpoints[0].quantization, device=device
    )
    of_one = weights.by_component["experts"] / (256 // 8 + 1)

    assert layout.redundant_experts == 8
    assert (weights.loaded_bytes + 3 * of_one) / GIB == pytest.approx(105.59, rel=0.005)


@pytest.mark.parametrize(
    ("changed", "field", "told"),
    [
        ({"engine": "vllm"}, "all2all_backend", "engine=sglang"),
        ({"engine_version": "0.4.9"}, "all2all_backend", "own exchange"),
        ({"gpu": "b200"}, "all2all_backend", "own exchange"),
        ({"gpu": "h100-pcie"}, "all2all_backend", "own exchange"),
        ({"gpu": "gh200"}, "all2all_backend", "own exchange"),
        ({"gpu": "gb200", "data_parallel_size": 8}, "all2all_backend", "data_parallel_size=16, 32 or 64"),
        ({"gpu": "gb200", "max_num_seqs": 1025}, "max_num_seqs", "1 to 1024"),
        ({"model": "qwen3-235b-a22b"}, "all2all_backend", "own exchange"),
        ({"model": "llama-3.1-8b"}, "all2all_backend", "own exchange"),
        ({"weight_format": "int4"}, "all2all_backend", "own exchange"),
        ({"tensor_parallel_size": 8}, "all2all_backend", "data_parallel_size=8"),
        ({"data_parallel_size": 12}, "all2all_backend", "data_parallel_size=8"),
        ({"expert_parallel": False}, "all2all_backend", "expert_parallel=true"),
        ({"max_num_seqs": 257}, "max_num_seqs", "1 to 256"),
        (
            {"max_num_seqs": 200, "num_speculative_tokens": 1, "speculative_acceptance_fraction": 0.7},
            "max_num_seqs",
            "1 to 128",
        ),
        ({"max_loras": 2}, "max_loras", "0"),
        ({"all2all_backend": "pplx"}, "all2all_backend", "deepep"),
    ],
)
def test_what_is_not_sized_is_refused(client: TestClient, changed: dict[str, Any], field: str, told: str) -> None:
    refused = client.post("/size", json={**WIDE, **changed})

    assert refused.status_code == 422
    [error] = refused.json()["errors"]
    assert error["field"] == field
    assert told in error["accepted"]


def test_no_pinned_number_of_ranks_takes_fewer_gpus(client: TestClient) -> None:
    limits = {"ttft_s": 5, "tpot_s": 0.1}
    chosen = client.post("/size", json={**WIDE, **limits, "request_rate_per_s": 60}).json()["gpus"]
    pinned = [
        client.post("/size", json={**WIDE, **limits, "request_rate_per_s": 60, "data_parallel_size": ranks}).json()
        for ranks in (8, 16, 32, 64)
    ]

    assert chosen == min(sized["gpus"] for sized in pinned if sized["feasible"])


def test_pools_of_prefill_and_decode_are_spread_as_well(client: TestClient) -> None:
    sized = client.post("/size", json={**WIDE, "disaggregated": True}).json()

    assert sized["pools"]["prefill_layout"]["all2all_backend"] == sized["layout"]["all2all_backend"] == "deepep"
    assert "--moe-a2a-backend" in sized["pools"]["prefill_engine_args"]


@pytest.mark.parametrize("version", ["0.5.10", "0.5.23"])
def test_every_flag_is_one_of_the_version(client: TestClient, version: str) -> None:
    sized = client.post("/size", json={**WIDE, "engine_version": version}).json()
    flags = {each for each in sized["engine_args"] if each.startswith("--")}

    assert {"--moe-a2a-backend", "--ep-num-redundant-experts", "--enable-eplb"} <= flags <= flags_of("sglang", version)


def test_room_is_made_where_a_step_has_more_tokens_than_there_is_room_for(client: TestClient) -> None:
    """SGLang 0.5.23 `environ.py`: `SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK = EnvInt(128)`."""
    many, few = (
        client.post("/size", json={**WIDE, "data_parallel_size": 8, "max_num_seqs": seqs}).json()["command"]
        for seqs in (256, 128)
    )

    assert many.startswith("env SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK=256 python -m sglang.launch_server")
    assert few.startswith("python -m sglang.launch_server")


def test_a_step_reads_no_more_than_ran_in_published_pools(client: TestClient) -> None:
    """lmsys.org/blog/2025-05-05-large-scale-ep: 8,192 tokens on each H100 "before encountering out-of-memory"."""
    long = {"model": "deepseek-r1", "gpu": "h100", "input_tokens": 30_000, "ttft_s": 60}
    told = client.post("/size", json={**WIDE, **long}).json()["assumptions"]

    [tokens] = [each["value"] for each in told if each["name"] == "max_num_batched_tokens"]
    assert tokens <= 8_192


@pytest.mark.parametrize("path", ["capacity", "recommend", "replicas"])
def test_every_question_takes_it(client: TestClient, path: str) -> None:
    beside: dict[str, dict[str, Any]] = {
        "capacity": {"gpu": "h200", "gpu_count": 16},
        "recommend": {"gpus": ["h200", "b200"]},
        "replicas": {"gpu": "h200"},
    }
    asked = {name: value for name, value in WIDE.items() if name != "gpu"} | beside[path]
    answered = client.post(f"/{path}", json=asked)

    assert answered.status_code == 200
    assert answered.json()["feasible"]


def test_batches_overlap_where_that_is_stated(client: TestClient) -> None:
    """SGLang 0.5.23 `arg_groups/fields/exec_.py` (`enable_two_batch_overlap`)."""
    sized = client.post("/size", json={**WIDE, "enable_two_batch_overlap": True}).json()
    alone = client.post("/size", json={**WIDE, "all2all_backend": None, "enable_two_batch_overlap": True})

    assert sized["layout"]["enable_two_batch_overlap"]
    assert "--enable-two-batch-overlap" in sized["engine_args"]
    assert ("enable_two_batch_overlap", True) in [(each["name"], each["value"]) for each in sized["assumptions"]]
    assert alone.status_code == 422
    assert alone.json()["errors"][0]["field"] == "enable_two_batch_overlap"
