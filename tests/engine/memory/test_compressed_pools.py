"""SGLang's pools of DeepSeek V4, against the lines that its servers print when they start."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import CompressedPools, EngineSettings, Layout
from service.engine.memory.pools import SeparatePools
from service.engine.memory.separate_pools import (
    bytes_to_hold_one,
    has_separate_pools,
    plan_separate_pools,
    separate_pools,
    windows_ratio,
)

GIB = 1 << 30
WHOLE = Layout()


def settings(**changes: Any) -> EngineSettings:
    given = {"max_model_len": 9_472, "max_num_batched_tokens": 8_192, "max_num_seqs": 64, "kv_cache_dtype": "fp8"}
    return EngineSettings(gpu_memory_utilization=0.9, **{**given, **changes})


def pools(catalog: Snapshot, model: str, gib: float, layout: Layout = WHOLE, **stated: Any) -> SeparatePools:
    return separate_pools(catalog.model(model).architecture, layout, settings(**stated), round(gib * GIB))


@pytest.mark.parametrize(
    ("version", "sized", "gib", "per_token", "full", "windows"),
    [
        ("0.5.15", "by_request", 118.93, 13_735.04, 9_217_792, 1_382_656),
        ("0.5.13", "by_tokens", 105.08, 32_781.44, 3_441_920, 516_096),
    ],
)
def test_a_token_of_deepseek_v4_pro_takes_what_is_printed(
    catalog: Snapshot, version: str, sized: CompressedPools, gib: float, per_token: float, full: int, windows: int
) -> None:
    """DeepSeek-V4-Pro on each of eight GPUs with 64 requests, `--swa-full-tokens-ratio 0.15`, as it starts.

    0.5.15: "bytes_per_full_token=13735.04, available_bytes=118.93 GB, c128_state_fixed=1.01 GB, full_token=9217792";
    0.5.13: "bytes_per_full_token=32781.44  available_bytes=105.08 GB  full_token=3,441,920", "swa=516096".
    """
    ours = pools(catalog, "deepseek-v4-pro", gib, compressed_pools=sized, swa_full_tokens_ratio=0.15)

    assert rules_for("sglang", version).plan.compressed_pools == sized
    assert ours.bytes_per_page / 256 == pytest.approx(per_token, abs=0.01)
    assert ours.tokens == pytest.approx(full, rel=1e-4)  # the memory is printed to 0.01 GiB
    assert ours.window_tokens == pytest.approx(windows, rel=1e-3)


def test_states_of_128_tokens_are_kept_for_each_request(catalog: Snapshot) -> None:
    """The same start: "c128_state_fixed=1.01 GB"."""
    ours = pools(catalog, "deepseek-v4-pro", 118.93, compressed_pools="by_request", swa_full_tokens_ratio=0.15)

    assert ours.fixed_bytes == 31 * 67 * 128 * 4_096
    assert round(ours.fixed_bytes / GIB, 2) == 1.01


def test_drafts_take_one_layer_more_and_rings_twice_as_long(catalog: Snapshot) -> None:
    """DeepSeek-V4-Flash with drafts, whose default is a tenth: "bytes_per_full_token=9259.90"."""
    ours = pools(
        catalog, "deepseek-v4-flash", 80, compressed_pools="by_request", num_speculative_tokens=1,
        speculative_method="mtp",
    )  # fmt: skip

    assert ours.bytes_per_page / 256 == pytest.approx(9_259.90, abs=0.01)


# SGLang 0.5.23's own classes, asked on a machine without a GPU with 20 GiB for the pools of each rank of
# DeepSeek-V4-Flash: "DSV4 SWA sizing: mode=ratio (explicit), swa_tokens=292864, swa_full_tokens_ratio=0.1",
# "bytes_per_full_token=7086.75, available_bytes=20.00 GB, c128_state_fixed=0.65 GB, full_token=2930944", and the same
# of other layouts.
@pytest.mark.parametrize(
    ("stages", "requests", "stated", "full", "windows"),
    [
        (1, 64, {}, 2_930_944, 292_864),
        (2, 64, {}, 5_722_624, 572_160),
        (4, 32, {"enable_prefix_caching": False}, 10_995_200, 1_099_520),
        (1, 128, {"swa_full_tokens_ratio": 0.2}, 1_956_352, 391_168),
    ],
)
def test_windows_are_a_tenth_whatever_requests_run(
    catalog: Snapshot, stages: int, requests: int, stated: dict[str, Any], full: int, windows: int
) -> None:
    layout = Layout(tensor_parallel_size=8, pipeline_parallel_size=stages)
    ours = pools(catalog, "deepseek-v4-flash", 20, layout, max_num_seqs=requests, stage_rule="last", **stated)

    assert rules_for("sglang", "0.5.23").plan.compressed_pools == settings().compressed_pools
    assert (ours.tokens, ours.window_tokens) == (full, windows)


def test_a_stated_ratio_is_kept(catalog: Snapshot) -> None:
    architecture = catalog.model("deepseek-v4-flash").architecture
    asked = settings(swa_full_tokens_ratio=0.2)
    ours = separate_pools(architecture, Layout(), asked, 60 * GIB)

    assert windows_ratio(architecture, asked) == pytest.approx(0.2)
    assert ours.window_tokens == pytest.approx(ours.tokens / 5, abs=256)


def test_a_stage_keeps_its_own_layers(catalog: Snapshot) -> None:
    staged, whole = (
        pools(catalog, "deepseek-v4-flash", 60, Layout(pipeline_parallel_size=stages), max_num_seqs=8)
        for stages in (4, 1)
    )

    assert staged.window_bytes_per_token < whole.window_bytes_per_token / 3
    assert staged.tokens > 3 * whole.tokens


@pytest.mark.parametrize("sized", ["by_tokens", "by_request", "padded"])
@pytest.mark.parametrize("tokens", [1, 3_000, 100_000])
def test_one_request_fits_in_what_it_is_said_to_need(catalog: Snapshot, sized: CompressedPools, tokens: int) -> None:
    architecture = catalog.model("deepseek-v4-flash").architecture
    asked = settings(max_model_len=100_000, compressed_pools=sized)
    needed = bytes_to_hold_one(architecture, Layout(), asked, tokens)

    def holds(available_bytes: int) -> bool:
        ours = separate_pools(architecture, Layout(), asked, available_bytes)
        return ours.blocks_per_request(tokens, 2 * 8_192) <= ours.num_pages - 1

    assert has_separate_pools(architecture)
    assert holds(round(needed * 1.03))
    assert not holds(round(needed * 0.97))


def test_what_is_described_is_what_is_kept(catalog: Snapshot) -> None:
    architecture = catalog.model("deepseek-v4-flash").architecture
    cache = plan_separate_pools(architecture, layout=Layout(), settings=settings(), available_bytes=80 * GIB)
    kinds = [(group.kind, group.num_layers, group.window_tokens) for group in cache.groups]

    assert cache.block_size == 256
    assert cache.bytes_per_token == 3_900  # 21 x (585 + 132) / 4 and 20 x 864 / 128
    assert kinds == [
        ("sliding_window_mla", 43, 128),
        ("mla_attention", 21, None),
        ("mla_attention", 21, None),
        ("sliding_window_mla", 21, 128),
        ("mla_attention", 20, None),
        ("circular_buffer", 20, None),
    ]


def test_256_requests_run_where_nobody_states_them(catalog: Snapshot) -> None:
    """SGLang 0.5.12 to 0.5.23 `arg_groups/deepseek_v4_hook.py`: "Setting max_running_requests to 256"."""
    own, stated, other = (
        resolve(catalog.model(model), catalog.gpu("h200"), StatedSettings(max_num_seqs=seqs), rules_for("sglang"))
        for model, seqs in (("deepseek-v4-flash", None), ("deepseek-v4-flash", 512), ("deepseek-v3", None))
    )

    assert (own.settings.max_num_seqs, stated.settings.max_num_seqs) == (256, 512)
    assert other.settings.max_num_seqs > 256
