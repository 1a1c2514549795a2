"""What an engineer would pick from: the first options for common models, where no limits and no GPUs are stated.

Deployments that are documented by those who run or publish them stand in `deployed.yaml`, each with its source: types and
numbers of GPUs, or the least memory that a recipe asks for in a format.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.testclient import TestClient

from service.catalog.snapshot import Snapshot
from service.engine.fleet.shortlist import computes_in, most_together, product_line

LOAD = {"concurrent_requests": 16, "input_tokens": 2000, "output_tokens": 500, "limit": 3}
COMMON = (
    "llama-3.1-8b", "llama-3.3-70b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-120b", "gpt-oss-20b", "deepseek-v3",
    "gemma-3-27b-it", "qwen2.5-72b-instruct", "qwen3-235b-a22b",
)  # fmt: skip
PAGE = yaml.safe_load((Path(__file__).parent / "deployed.yaml").read_text(encoding="utf-8"))
DEPLOYED: dict[str, list[dict[str, Any]]] = PAGE["deployed"]
GB = 10**9
# Others that an engineer would ask about, each validated by a vendor of an inference server.
VALIDATED = ("mistral-small-3.1", "phi-4", "qwen2.5-7b", "mixtral-8x7b-v0.1", "llama-4-scout")


@pytest.fixture(scope="module")
def listed(client: TestClient) -> dict[str, list[dict[str, Any]]]:
    answers = {name: client.get("/recommend", params={"model": name, **LOAD}).json() for name in (*COMMON, *VALIDATED)}
    return {name: answer["options"] for name, answer in answers.items()}


@pytest.mark.parametrize("model", COMMON)
def test_the_first_options_are_those_of_a_data_centre(
    listed: dict[str, list[dict[str, Any]]], catalog: Snapshot, model: str
) -> None:
    own = next(each for each in catalog.model(model).checkpoints if each.is_default)
    makers = {each.weight_format: str(each.hf_id).partition("/")[0] for each in catalog.model(model).checkpoints}

    assert len(listed[model]) == 3
    for option in listed[model]:
        gpu = catalog.gpu(option["gpu"])
        assert product_line(gpu) == "data-centre"
        assert computes_in(gpu, option["weight_format"]) or option["weight_format"] == own.weight_format == "mxfp4"
        assert option["weight_format"] != "int4" or makers["int4"] == str(own.hf_id).partition("/")[0]
        assert option["gpus_per_replica"] <= most_together(gpu)
        assert option["tensor_parallel_size"] in (1, 2, 4, 8)
        assert option["pipeline_parallel_size"] == 1
        assert option["gpus_per_replica"] <= gpu.gpus_per_node
        assert option["ttft_p95_s"] <= 5.0
        assert option["tpot_p95_s"] <= 0.1
        assert (option["tier"], option["purchase"]) == ("secure", "on-demand")
        assert option["command"].startswith("vllm serve ")


def is_published(option: dict[str, Any], row: dict[str, Any], catalog: Snapshot) -> bool:
    """Return whether a replica is a published one: the same GPUs, or as much memory as a recipe asks for."""
    if option["weight_format"] != row["format"]:
        return False
    if "is_one_of_its_chip" in row:
        mine, theirs = catalog.gpu(option["gpu"]), catalog.gpu(row["gpu"])
        is_as_large = marketed_bytes(catalog, mine.id) >= marketed_bytes(catalog, theirs.id)
        is_alike = mine.compute_capability == theirs.compute_capability and is_as_large
        return bool(is_alike and option["gpus_per_replica"] == row["gpus"])
    if "gpu" in row:
        return (option["gpu"], option["gpus_per_replica"]) == (row["gpu"], row["gpus"])
    return bool(option["gpus_per_replica"] * marketed_bytes(catalog, option["gpu"]) >= row["least_gb"] * GB)


def marketed_bytes(catalog: Snapshot, gpu: str) -> float:
    """Return the memory that a GPU is sold with: recipes speak of it."""
    figures = catalog.gpu_entries[gpu].figures
    return figures.get("marketed_memory_bytes", figures["memory_bytes"]).value


@pytest.mark.parametrize("model", [*COMMON, *VALIDATED])
def test_the_first_three_are_published_deployments(
    listed: dict[str, list[dict[str, Any]]], catalog: Snapshot, model: str
) -> None:
    unknown = [
        (option["gpus_per_replica"], option["gpu"], option["weight_format"])
        for option in listed[model]
        if not any(is_published(option, row, catalog) for row in DEPLOYED[model])
    ]

    assert unknown == []


def test_every_published_deployment_names_its_source() -> None:
    assert {row["source"] for rows in DEPLOYED.values() for row in rows} == set(PAGE["sources"])
    assert set(DEPLOYED) == {*COMMON, *VALIDATED}


def test_gpus_that_are_paid_for_are_at_work(listed: dict[str, list[dict[str, Any]]]) -> None:
    """Eight MI300X are rented at once: four of them would serve DeepSeek V3 more slowly at the same price."""
    option = next(each for each in listed["deepseek-v3"] if each["gpu"] == "mi300x")

    assert (option["gpus"], option["gpus_paid"], option["tensor_parallel_size"]) == (8, 8, 8)


def test_nothing_listed_first_is_dearer_than_what_follows(listed: dict[str, list[dict[str, Any]]]) -> None:
    for options in listed.values():
        prices = [option["usd_per_hour"] for option in options]
        assert prices == sorted(prices)
