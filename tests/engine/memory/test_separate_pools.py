"""SGLang's pools against its own start-up logs: tokens, states and requests as printed."""

from fractions import Fraction
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings, plan_replica
from service.engine.fleet.settings import resolve
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout
from service.engine.memory.indexers import as_indexed
from service.engine.memory.plan import memory_plan
from service.engine.memory.pools import SeparatePools
from service.engine.memory.separate_pools import (
    bytes_to_hold_one,
    plan_separate_pools,
    separate_pools,
)
from service.engine.memory.shared_pool import plan_kv_cache

GIB = 1 << 30
TP2 = Layout(tensor_parallel_size=2)


def settings(**changes: Any) -> EngineSettings:
    given = {"max_model_len": 262_144, "max_num_batched_tokens": 4_096, "max_num_seqs": 64, "kv_cache_dtype": "bf16"}
    return EngineSettings(gpu_memory_utilization=0.85, **{**given, **changes})


# model, cache dtype, swa_full_tokens_ratio, full_layer_tokens, swa_layer_tokens, "SWAKVPool mem usage" [GiB];
# github.com/mattbucci/2x-3090-GA102-300-A1-sglang-inference, benchmarks/sprint-2026-06-kv-decode, TP 2
WINDOWS: dict[str, tuple[str, KvCacheDtype, Fraction, int, int, float]] = {
    "Gemma 4 26B-A4B, default": ("gemma-4-26b-a4b-it", "bf16", Fraction(8, 10), 117_840, 94_272, 10.11),
    "Gemma 4 26B-A4B, 1/16": ("gemma-4-26b-a4b-it", "bf16", Fraction(1, 16), 652_652, 40_790, 10.11),
    "Gemma 4 31B, 1/20": ("gemma-4-31b-it", "fp8", Fraction(1, 20), 347_053, 17_352, 9.93),
}


@pytest.mark.parametrize(("model", "dtype", "ratio", "full", "windowed", "gib"), WINDOWS.values(), ids=WINDOWS)
def test_windowed_layers_have_a_pool_of_their_own(
    catalog: Snapshot, model: str, dtype: KvCacheDtype, ratio: Fraction, full: int, windowed: int, gib: float
) -> None:
    architecture = catalog.model(model).architecture
    stated = settings(kv_cache_dtype=dtype, swa_full_tokens_ratio=float(ratio))
    pools = separate_pools(architecture, TP2, stated, round(gib * GIB))

    # The pool is printed to 0.01 GiB: a thousandth.
    assert pools.tokens == pytest.approx(full, rel=1.1e-3)
    assert pools.window_tokens == pytest.approx(windowed, rel=1.1e-3)


def test_states_take_nine_nineteenths(catalog: Snapshot) -> None:
    # Qwen3.5-9B on two RTX 4090: "max_mamba_cache_size: 186, conv_state size: 0.10GB, ssm_state size: 4.38GB",
    # "#tokens: 327310, K size: 2.50 GB, V size: 2.50 GB". One state more is allocated than handed out.
    # Until 0.5.17 that one was not counted (`mem_cache/kv_cache_configurator.py`).
    architecture = catalog.model("qwen3.5-9b").architecture
    former = settings(pads_states=False)
    pools = separate_pools(architecture, TP2, former, round((4.48 * 186 / 187 + 5.0) * GIB))

    assert pools.num_states == 186
    assert 187 * pools.state_bytes / GIB == pytest.approx(4.48, abs=0.01)
    assert pools.tokens == pytest.approx(327_310, rel=3e-3)
    assert pools.page_size == 1


def test_states_that_no_config_names_are_fp32(catalog: Snapshot) -> None:
    """SGLang's pull request 15337, on Qwen3-Next: "`bfloat16` to save mamba cache size ... default is `float32`"."""
    architecture = catalog.model("qwen3-next-80b-a3b-instruct").architecture
    own, narrow = (
        separate_pools(architecture, TP2, settings(**stated), 40 * GIB).state_bytes
        for stated in ({}, {"mamba_ssm_cache_dtype": "bfloat16"})
    )

    # 36 layers: the last three inputs of 8,192 channels in bf16, and 32 matrices of 128 x 128; half on each rank.
    assert own == 36 * (3 * 4_096 * 2 + 16 * 128 * 128 * 4)
    assert narrow == 36 * (3 * 4_096 * 2 + 16 * 128 * 128 * 2)


def test_states_bound_requests_whatever_their_length(catalog: Snapshot) -> None:
    plans = [sized(catalog, "qwen3.5-9b", tokens) for tokens in (16, 2_048)]
    architecture = catalog.model("qwen3.5-9b").architecture
    pools = separate_pools(architecture, TP2, plans[0].settings, plans[0].memory.kv_cache_bytes)

    # extra_buffer under overlap scheduling: 3 + 2 states of each request (`_calculate_mamba_ratio`).
    assert [plan.requests_in_cache for plan in plans] == [pools.num_states // 5] * 2


@pytest.mark.parametrize(
    ("page", "model", "version", "gpu", "ranks"),
    [
        ("Nemotron3-Nano", "nemotron-3-nano-30b-a3b", "0.5.6.post2", "b200", 1),
        ("Nemotron3-Super", "nemotron-3-super-120b-a12b", "0.5.9", "h200", 4),
    ],
)
def test_older_versions_keep_no_buffers_beside_states(
    catalog: Snapshot, page: str, model: str, version: str, gpu: str, ranks: int
) -> None:
    """SGLang's cookbook: 256 users wait 93 and 115 ms for a first token at the median, so that all of them run."""
    held = [
        plan_replica(
            catalog.model(model), catalog.gpu(gpu), Layout(tensor_parallel_size=ranks),
            StatedSettings(max_num_seqs=1_024, weight_format="bf16"), rules_for("sglang", each),
            input_tokens=508, output_tokens=510,
        ).requests_in_cache
        for each in (version, "0.5.14")
    ]  # fmt: skip

    assert held[1] < 256 <= held[0], page


def test_drafts_keep_states_of_running_requests(catalog: Snapshot) -> None:
    # "intermediate states: (max_mamba_cache_size / ratio) * D * per_req", D = 4 for three steps: 1 + 4/5.
    architecture = catalog.model("qwen3.5-9b").architecture
    plain, drafted = (
        separate_pools(
            architecture,
            TP2,
            settings(
                num_speculative_tokens=count,
                speculative_method="mtp" if count else None,
                max_num_seqs=4_096,
                counts_stated_drafts=False,  # as before 0.5.20
            ),
            20 * GIB,
        )
        for count in (0, 3)
    )

    assert drafted.num_states == pytest.approx(plain.num_states / 1.8, abs=4)  # and those of one request that never is
    assert drafted.state_bytes == plain.state_bytes
    assert drafted.tokens < plain.tokens


@pytest.mark.parametrize("model", ["gemma-3-27b-it", "llama-3.1-8b"])
def test_other_models_keep_every_token_in_every_layer(catalog: Snapshot, model: str) -> None:
    # `is_hybrid_swa_model` lists neither.
    architecture = catalog.model(model).architecture
    cache = plan_separate_pools(architecture, layout=Layout(), settings=settings(), available_bytes=20 * GIB)

    assert cache.bytes_per_token == cache.bytes_per_token_within_windows == cache.bytes_per_block
    assert cache.tokens == 20 * GIB // cache.bytes_per_token


def test_equal_layers_hold_what_shared_pages_hold(catalog: Snapshot) -> None:
    architecture = catalog.model("llama-3.1-8b").architecture
    own, shared = (
        plan(architecture, layout=Layout(), settings=settings(max_model_len=8_192), available_bytes=20 * GIB)
        for plan in (plan_separate_pools, plan_kv_cache)
    )

    assert 0 <= own.tokens - shared.tokens < 16


@pytest.mark.parametrize("model", ["qwen3.5-9b", "gpt-oss-20b", "gemma-4-26b-a4b-it", "llama-3.1-8b"])
@pytest.mark.parametrize("tokens", [1, 3_000, 100_000])
def test_one_request_fits_in_what_it_is_said_to_need(catalog: Snapshot, model: str, tokens: int) -> None:
    architecture, asked = catalog.model(model).architecture, settings(max_model_len=100_000)
    needed = bytes_to_hold_one(architecture, TP2, asked, tokens)

    def holds(available_bytes: int) -> bool:
        pools = separate_pools(architecture, TP2, asked, available_bytes)
        return pools.blocks_per_request(tokens, 2 * 4_096) <= pools.num_pages - 1

    assert holds(needed + pools_slack(architecture))
    assert not holds(round(needed * 0.98) - pools_slack(architecture))


def pools_slack(architecture: Any) -> int:
    """Return the bytes that rounding to whole states and tokens may cost."""
    pools = separate_pools(architecture, TP2, settings(), GIB)
    return 2 * pools.state_bytes + 4 * (pools.full_bytes_per_token + pools.window_bytes_per_token)


def sized(catalog: Snapshot, model: str, tokens: int) -> Any:
    facts, rules = catalog.model(model), rules_for("sglang")
    return memory_plan(
        facts,
        next(it for it in facts.checkpoints if it.is_default),
        catalog.gpu("rtx-4090"),
        TP2,
        settings(max_model_len=4_096),
        rules,
        input_tokens=tokens,
        output_tokens=16,
        shorten_to_fit=False,
    )


def test_rings_of_raw_keys_lie_beside_the_pools(catalog: Snapshot) -> None:
    """GLM 5.3 Flash, 11 layers of latents in bf16 and an indexer's key of 132 bytes for four tokens.

    SGLang 0.5.23 `mem_cache/memory_pool.py` (`DSATokenToKVPool`): a buffer of tails for each request that may run.
    """
    pools = plan_separate_pools(
        catalog.model("glm-5.3-flash").architecture, layout=TP2, settings=settings(), available_bytes=40 * GIB
    )

    assert pools.bytes_per_token == 11 * (512 * 2 + 132 // 4)
    assert {group.kind for group in pools.groups} == {"mamba", "mla_attention"}


def expected(catalog: Snapshot, model: str, gpu: str, layout: Layout, version: str, **stated: Any) -> SeparatePools:
    resolved = resolve(catalog.model(model), catalog.gpu(gpu), StatedSettings(**stated), rules_for("sglang", version))
    plan = memory_plan(
        resolved.model, resolved.checkpoint, resolved.gpu, layout, resolved.settings, resolved.rules,
        input_tokens=1_000, output_tokens=200, shorten_to_fit=False,
    )  # fmt: skip
    architecture = as_indexed(resolved.model.architecture, resolved.rules.plan)
    return separate_pools(architecture, layout, plan.settings, plan.memory.kv_cache_bytes)


# Its own number of requests, which no command of ours leaves open, gives states a share: so many are printed.
NO_PREFIXES: dict[str, Any] = {"gpu_memory_utilization": None, "enable_prefix_caching": False}


# SGLang `test/registered/8-gpu-models/` (`test_qwen35.py`, `test_nvidia_nemotron_3_super_nightly.py`) of July 2026:
# MEMORY_CAPACITY_FLOORS, each 0.99 of the fewest tokens that its servers of that month printed.
@pytest.mark.parametrize(
    ("model", "gpu", "layout", "stated", "floor"),
    [
        ("qwen3.5-397b-a17b", "h200", Layout(tensor_parallel_size=8), {"weight_format": "fp8"}, 2_305_676),
        ("qwen3.5-397b-a17b", "h200", Layout(data_parallel_size=8), {"weight_format": "fp8"}, 1_012_264),
        ("qwen3.5-397b-a17b", "b200", Layout(tensor_parallel_size=8), {"weight_format": "fp8"}, 3_418_605),
        ("qwen3.5-397b-a17b", "b200", Layout(data_parallel_size=8), {"weight_format": "fp8"}, 1_565_049),
        (
            "nemotron-3-super-120b-a12b", "h200", Layout(tensor_parallel_size=8),
            {**NO_PREFIXES, "max_num_seqs": 2_253}, 12_875_724,
        ),
        (  # 336 columns of an expert on each GPU, held as 384
            "nemotron-3-super-120b-a12b", "b200", Layout(tensor_parallel_size=8),
            {**NO_PREFIXES, "max_num_seqs": 2_793}, 15_966_031,
        ),
        (
            "nemotron-3-super-120b-a12b", "b200", Layout(tensor_parallel_size=8),
            {**NO_PREFIXES, "max_num_seqs": 3_323, "weight_format": "nvfp4"}, 37_996_596,
        ),
    ],
)  # fmt: skip
def test_eight_linked_gpus_hold_what_sglang_s_own_tests_expect(
    catalog: Snapshot, model: str, gpu: str, layout: Layout, stated: dict[str, Any], floor: int
) -> None:
    pools = expected(catalog, model, gpu, layout, "0.5.15", **{"gpu_memory_utilization": 0.8, **stated})
    assert pools.tokens == pytest.approx(floor / 0.99, rel=0.008)


# SGLang `test/registered/8-gpu-models/test_glm52_fp8.py` of July 2026: floors of its suite for both GPUs, each 0.99 of
# the mean of one start on eight H200 and one on eight B200 (that of gpt-oss-120b, 17,357,236, is the mean of those
# that it states for each, 15,221,452 and 19,493,020).
@pytest.mark.parametrize(
    ("layout", "tokens", "gigabytes"),
    [(Layout(tensor_parallel_size=8), 724_553, 43.4115), (Layout(data_parallel_size=8), 532_287, 30.6702)],
)
def test_every_layer_has_an_indexer_before_0_5_18(
    catalog: Snapshot, layout: Layout, tokens: int, gigabytes: float
) -> None:
    ours = [
        expected(catalog, "glm-5.2", gpu, layout, "0.5.15", gpu_memory_utilization=0.85, weight_format="fp8")
        for gpu in ("h200", "b200")
    ]

    # A latent in bf16 on Hopper and in fp8 on Blackwell, and an indexer's key, in each of 78 layers.
    assert [pools.full_bytes_per_token for pools in ours] == [78 * (576 * 2 + 132), 78 * (576 + 132)]
    assert sum(pools.tokens for pools in ours) / 2 == pytest.approx(tokens / 0.99, rel=0.02)
    held = sum(pools.tokens * pools.full_bytes_per_token for pools in ours) / 2
    assert held == pytest.approx(gigabytes / 0.99 * GIB, rel=0.02)


def test_layers_that_reuse_a_selection_have_none_since(catalog: Snapshot) -> None:
    pools = expected(catalog, "glm-5.2", "h200", Layout(tensor_parallel_size=8), "0.5.18")

    assert pools.full_bytes_per_token == 78 * 576 * 2 + 21 * 132


# The same suites with drafts: `test/registered/8-gpu-models/test_gpt_oss_120b.py` (EAGLE-3), `test_glm52_fp8.py` (a mean
# of both GPUs, as above), and GLM-5.2's on eight H200 alone (`DsaMtpServerBase`), each of three steps.
@pytest.mark.parametrize(
    ("model", "gpus", "layout", "stated", "floor"),
    [
        ("gpt-oss-120b", ("h200",), Layout(tensor_parallel_size=8), {"speculative_method": "eagle3"}, 13_376_204),
        ("gpt-oss-120b", ("b200",), Layout(tensor_parallel_size=8), {"speculative_method": "eagle3"}, 17_114_423),
        (
            "glm-5.2", ("h200",), Layout(tensor_parallel_size=8),
            {"speculative_method": "mtp", "weight_format": "fp8", "gpu_memory_utilization": 0.8}, 199_330,
        ),
        (
            "glm-5.2", ("h200", "b200"), Layout(data_parallel_size=8),
            {"speculative_method": "mtp", "weight_format": "fp8"}, 474_186,
        ),
    ],
)  # fmt: skip
def test_pools_are_sized_while_drafts_have_embeddings_of_their_own(
    catalog: Snapshot, model: str, gpus: tuple[str, ...], layout: Layout, stated: dict[str, Any], floor: int
) -> None:
    asked = {"gpu_memory_utilization": 0.85, "num_speculative_tokens": 3, **stated}
    tokens = [expected(catalog, model, gpu, layout, "0.5.15", **asked).tokens for gpu in gpus]

    assert sum(tokens) / len(gpus) == pytest.approx(floor / 0.99, rel=0.022)
