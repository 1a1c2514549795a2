"""What is considered where the caller names no GPUs."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.fleet.shortlist import product_line, stays_in_server, usual_formats


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

    assert set(usual_formats(model, catalog.gpu("a100"))) == {"bf16", "int8", "int4"}
    assert "fp8" in set(usual_formats(model, catalog.gpu("h100")))
    assert "nvfp4" not in set(usual_formats(model, catalog.gpu("h100")))
    assert "nvfp4" in set(usual_formats(model, catalog.gpu("b200")))
    assert "fp8" in set(usual_formats(catalog.model("deepseek-v3"), catalog.gpu("a100")))  # the model's own
