"""Kernels that vLLM 0.33 selects, or none: its own `CudaPlatform.get_valid_backends`, asked on every generation.

The answers of `selected_0_33.csv` are that function's, run on a platform that states a capability and runs no kernel.
"""

import csv
from collections.abc import Mapping
from pathlib import Path

import pytest

from service.engine.engines.device import Device
from service.engine.engines.kernel import AskedCache
from service.engine.engines.kernels import kernel_of
from service.engine.layers import KernelNeed

with Path(__file__).with_name("selected_0_33.csv").open(encoding="utf-8", newline="") as file:
    ROWS = list(csv.DictReader(file))
CAPABILITIES = [column for column in ROWS[0] if "." in column]


def need_of(row: Mapping[str, str]) -> KernelNeed:
    """Return what a row's layer needs."""
    return KernelNeed(
        kind=row["kind"],  # type: ignore[arg-type]
        key_dim=int(row["key"]),
        value_dim=int(row["value"]),
        nope_dim=int(row["nope"]),
        rope_dim=int(row["rope"]),
        top_k=int(row["top_k"]),
        has_sinks=row["sinks"] == "1",
    )


def selected(row: Mapping[str, str], capability: str) -> str:
    """Return what we select for a row on a generation."""
    major, _, minor = capability.partition(".")
    asked = AskedCache(
        kind="fp8" if row["cache"] == "fp8" else "model",
        images_both_ways=row["images"] == "1",
        context_ranks=int(row["context_ranks"]),
        block_size=int(row["block"]) if row["block"] else None,
    )
    kernel = kernel_of(need_of(row), asked, Device(capability=(int(major), int(minor))))
    return "none" if kernel is None else kernel.name


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_each_generation_runs_or_refuses_as_the_engine_does(capability: str) -> None:
    differing = {
        ",".join(list(row.values())[:11]): (selected(row, capability), row[capability])
        for row in ROWS
        if selected(row, capability) != row[capability]
    }

    assert differing == {}


def test_the_table_asks_for_every_way_of_attending() -> None:
    assert {row["kind"] for row in ROWS} == {"grouped", "latent", "sparse"}
    assert {row["context_ranks"] for row in ROWS} == {"1", "2"}
    assert any(row["12.0"] == "none" for row in ROWS)
