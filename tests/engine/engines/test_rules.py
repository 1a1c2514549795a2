"""What an engine takes when nobody says anything."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.rules import batch_defaults, default_utilization, gib, has_unified_memory


# vLLM 0.33 `engine/arg_utils.py` (`get_batch_defaults`), for the server: 8,192 from 70 GiB, but not on A100.
@pytest.mark.parametrize(
    ("gpu", "tokens", "requests"), [("h100", 8_192, 1_024), ("a100-80gb", 2_048, 256), ("l4", 2_048, 256)]
)
def test_batches_are_the_larger_the_more_memory_but_on_a100(
    catalog: Snapshot, gpu: str, tokens: int, requests: int
) -> None:
    assert batch_defaults(rules_for("vllm"), catalog.gpu(gpu)) == (tokens, requests)


# `engine/arg_utils.py` and `config/cache.py` of every release from 0.8.0 to 0.33.0, in the archives of the package index;
# of GB10 a published start-up of 0.27.1 has the smaller numbers.
@pytest.mark.parametrize(
    ("version", "share", "batches"),
    [
        ("0.8.3", 0.9, {"h100": (8_192, 1_024), "a100-80gb": (2_048, 1_024), "b200": (2_048, 1_024)}),
        ("0.8.4", 0.9, {"h200": (8_192, 1_024), "a100-80gb": (2_048, 256), "b200": (2_048, 256)}),
        ("0.8.5", 0.9, {"h100": (8_192, 1_024), "a100-80gb": (8_192, 1_024), "l40s": (2_048, 256)}),
        ("0.9.0", 0.9, {"h100": (8_192, 1_024), "a100-80gb": (2_048, 256), "gb10": (2_048, 256)}),
        ("0.19.1", 0.9, {"h100": (8_192, 1_024), "b200": (8_192, 1_024), "gb10": (2_048, 256)}),
        ("0.20.0", 0.92, {"h100": (8_192, 1_024), "b200": (8_192, 1_024)}),
        ("0.27.1", 0.92, {"b200": (8_192, 1_024), "mi300x": (8_192, 1_024), "gb10": (2_048, 256)}),
        ("0.28.0", 0.92, {"b200": (16_384, 1_024), "h200": (8_192, 1_024), "gb10": (2_048, 256)}),
        ("0.33.0", 0.92, {"b200": (16_384, 1_024), "a100-80gb": (2_048, 256), "gb10": (2_048, 256)}),
    ],
)
def test_defaults_are_those_of_each_release(
    catalog: Snapshot, version: str, share: float, batches: dict[str, tuple[int, int]]
) -> None:
    rules = rules_for("vllm", version)

    assert rules.default_gpu_memory_utilization == share
    assert {gpu: batch_defaults(rules, catalog.gpu(gpu)) for gpu in batches} == batches


def test_vllm_takes_the_same_share_of_every_gpu(catalog: Snapshot) -> None:
    shares = {default_utilization(rules_for("vllm"), catalog.gpu(name)) for name in ("l4", "h100", "b200")}

    assert len(shares) == 1
    assert {default_utilization(rules_for("vllm", "0.10"), catalog.gpu("h100"))} == {0.9}


def test_sglang_leaves_a_reserve_free(catalog: Snapshot) -> None:
    # 0.5.23 of an H100: 512 + 1.5 x 8192 + 2 x 256 + 128 + 58 x 8 of 81,559 MiB.
    assert default_utilization(rules_for("sglang"), catalog.gpu("h100")) == pytest.approx(
        (81_559 - 13_904) / 81_559, abs=0.001
    )


def test_gb10_shares_the_host_s_memory(catalog: Snapshot) -> None:
    assert not has_unified_memory(catalog.gpu("h100"))
    assert has_unified_memory(replace(catalog.gpu("h100"), name="NVIDIA GB10"))


def test_a_printed_gib_is_whole_bytes() -> None:
    assert gib(2) == 2 << 30
    assert gib(0.5) == 1 << 29
