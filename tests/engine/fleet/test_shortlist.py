"""What is considered where the caller names no GPUs."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.fleet.shortlist import most_together, product_line, stays_in_server, usual_formats


@pytest.mark.parametrize(
    ("gpu", "line"),
    [
        ("rtx-5090", "consumer"),
        ("rtx-a6000", "workstation"),
        ("rtx-pro-6000-workstation", "workstation"),
        ("gb10", "workstation"),
        ("rtx-pro-6000-server", "data-centre"),
        ("l40s", "data-centre"),
        ("mi300x", "data-centre"),
        ("gaudi-3", "data-centre"),
    ],
)
def test_the_vendors_name_of_a_line_tells_whom_it_is_for(catalog: Snapshot, gpu: str, line: str) -> None:
    assert product_line(catalog.gpu(gpu)) == line


@pytest.mark.parametrize(
    ("gpu", "stays"), [("h100", False), ("mi300x", False), ("gb200", False), ("a40", True), ("gh200", True)]
)
def test_servers_are_joined_where_each_is_one_fast_domain(catalog: Snapshot, gpu: str, stays: bool) -> None:  # noqa: FBT001
    assert stays_in_server(catalog.gpu(gpu)) == stays


def test_a_format_is_listed_where_the_gpu_computes_in_it(catalog: Snapshot) -> None:
    model = catalog.model("llama-3.3-70b")

    assert set(usual_formats(model, catalog.gpu("a100"))) == {"bf16", "int8"}
    assert "fp8" in set(usual_formats(model, catalog.gpu("h100")))
    assert "nvfp4" not in set(usual_formats(model, catalog.gpu("h100")))
    assert "nvfp4" in set(usual_formats(model, catalog.gpu("b200")))
    assert set(usual_formats(catalog.model("gpt-oss-120b"), catalog.gpu("a100"))) == {"mxfp4"}  # the model's own
    assert not set(usual_formats(catalog.model("deepseek-v3"), catalog.gpu("a100")))


def test_weights_alone_in_four_bits_are_listed_where_the_models_publisher_made_them(catalog: Snapshot) -> None:
    """Qwen publishes Qwen3-32B-AWQ; the one of Llama 3.3 is by somebody else."""
    gpu = catalog.gpu("a40")

    assert "int4" in set(usual_formats(catalog.model("qwen3-32b"), gpu))
    assert "int4" not in set(usual_formats(catalog.model("llama-3.3-70b"), gpu))


@pytest.mark.parametrize(("gpu", "most"), [("h100", 8), ("l40s", 4), ("rtx-pro-6000-server", 4), ("gh200", 1)])
def test_a_replica_without_a_fabric_stays_with_one_processor(catalog: Snapshot, gpu: str, most: int) -> None:
    assert most_together(catalog.gpu(gpu)) == most
