"""The share that SGLang takes of a layout by itself."""

from typing import Literal

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import StatedSettings
from service.engine.arithmetic import GIB, MIB
from service.engine.engines.static_share import FOUR_RANKS
from service.engine.fleet.settings import Resolved, resolve
from service.engine.inputs import Layout
from service.engine.memory.ledger import memory_per_gpu
from service.engine.memory.separate_pools import separate_pools
from service.engine.memory.share import captures_prompts, launched_share, part_of_share, served_of, with_own_share


def resolved(catalog: Snapshot, model: str, engine_version: str, **stated: float) -> Resolved:
    settings = StatedSettings(**stated)  # type: ignore[arg-type]
    return resolve(catalog.model(model), catalog.gpu("h100"), settings, rules_for("sglang", engine_version))


def share(question: Resolved, layout: Layout) -> float:
    architecture = question.model.architecture
    return with_own_share(architecture, question.gpu, layout, question.settings, question.rules).gpu_memory_utilization


def test_more_ranks_leave_more_free(catalog: Snapshot) -> None:
    llama = resolved(catalog, "llama-3.1-70b", "0.5.9")

    shares = [share(llama, Layout(tensor_parallel_size=ranks)) for ranks in (1, 2, 4, 8)]

    # SGLang 0.5.9 run on these sizes; it asks the driver, which tells of 1.5 MiB in 256 more than CUDA does.
    assert shares == pytest.approx([0.835, 0.834, 0.824, 0.818], abs=0.0015)


def test_copies_of_the_attention_take_a_fifth_of_an_h100(catalog: Snapshot) -> None:
    deepseek = resolved(catalog, "deepseek-v3", "0.5.9")

    assert share(deepseek, Layout(data_parallel_size=8)) == pytest.approx(
        0.592, abs=0.003
    )  # --tp 8 --dp 8 --enable-dp-attention


def test_a_launch_sets_memory_aside_for_the_chunk_of_all_copies(catalog: Snapshot) -> None:
    """The same launch: each copy reads an eighth of 8,192 tokens, which is divided after memory is."""
    deepseek = resolved(catalog, "deepseek-v3", "0.5.9", max_num_batched_tokens=1_024)
    launched = launched_share(
        deepseek.model.architecture, deepseek.gpu, Layout(data_parallel_size=8), deepseek.settings, deepseek.rules
    )

    assert launched == pytest.approx(0.592, abs=0.003)


def test_the_requests_of_all_copies_are_captured(catalog: Snapshot) -> None:
    """SGLang 0.5.23: `decode.max_bs > cfg.max_running_requests`, of which a copy runs `// attn_dp_size`."""
    deepseek = resolved(catalog, "deepseek-v3", "0.5.23", max_num_seqs=16)
    served = served_of(deepseek.model.architecture, deepseek.gpu, Layout(data_parallel_size=8), deepseek.settings)

    assert served.running == 128


# SGLang 0.5.23 `arg_groups/memory_hook.py` (`handle_gpu_memory_settings`): MiB, ranks, chunk, captured requests
@pytest.mark.parametrize(
    ("memory_mib", "ranks", "chunk", "captured"),
    [
        (16_384, 8, 2_048, 8),
        (24_564, 1, 4_096, 48),
        (24_564, 4, 4_096, 160),
        (32_607, 1, 4_096, 48),
        (40_960, 1, 4_096, 32),
        (46_068, 4, 4_096, 160),
        (81_559, 1, 8_192, 256),
        (81_559, 8, 8_192, 512),
        (97_871, 1, 8_192, 256),
        (143_771, 1, 8_192, 256),
        (143_771, 4, 8_192, 512),
        (183_359, 1, 16_384, 512),
        (294_896, 8, 16_384, 512),
    ],
)
def test_chunks_and_captured_requests_are_those_of_the_memory_s_tier(
    memory_mib: int, ranks: int, chunk: int, captured: int
) -> None:
    rules = rules_for("sglang", "0.5.23")
    assert rules.static_reserve is not None
    tier = next(it for it in rules.static_reserve.tiers if memory_mib * MIB >= it.at_least_memory_bytes)
    batch = next(it for it in rules.batch_defaults if memory_mib * MIB >= it.at_least_memory_bytes)

    assert batch.max_num_batched_tokens == chunk
    assert (tier.captured if ranks < FOUR_RANKS else tier.captured_of_four) == captured


def test_a_model_that_sees_images_leaves_more_free(catalog: Snapshot) -> None:
    seeing = resolved(catalog, "qwen2.5-vl-7b-instruct", "0.5.9")

    assert share(seeing, Layout()) == pytest.approx(0.748630, abs=0.0015)


def test_a_stated_share_is_kept(catalog: Snapshot) -> None:
    asked = resolved(catalog, "llama-3.1-70b", "0.5.9", gpu_memory_utilization=0.7)

    assert share(asked, Layout(tensor_parallel_size=8)) == 0.7


def test_adapters_and_stages_keep_prompts_from_being_captured(catalog: Snapshot) -> None:
    llama = resolved(catalog, "llama-3.1-8b", "0.5.10", max_loras=1)
    layout = Layout(pipeline_parallel_size=2)

    served = served_of(llama.model.architecture, llama.gpu, layout, llama.settings)

    assert served.obstacles == {"adapters", "stages"}


# SGLang 0.5.21's own planner, of H100s without a GPU (two stages of two ranks): "Disabling breakable prefill CUDA graph
# by default for pipeline parallelism", since 0.5.19 `arg_groups/cuda_graph_hook.py`
@pytest.mark.parametrize(("model", "own"), [("gpt-oss-20b", 0.831), ("glm-4.5-air", 0.831), ("kimi-k2.5", 0.755991)])
def test_prompts_of_stages_are_captured_before_0_5_19(catalog: Snapshot, model: str, own: float) -> None:
    layout = Layout(tensor_parallel_size=2, pipeline_parallel_size=2)

    assert share(resolved(catalog, model, "0.5.21"), layout) == pytest.approx(own, abs=1e-6)
    assert share(resolved(catalog, model, "0.5.19"), layout) == pytest.approx(own, abs=1e-6)
    assert share(resolved(catalog, "glm-4.5-air", "0.5.18"), layout) < 0.831


@pytest.mark.parametrize(
    ("version", "model", "gpu", "captures"),
    [
        ("0.5.10", "qwen3-32b", "h200", True),
        ("0.5.17", "deepseek-v3", "h200", False),  # breakable graphs leave out latents
        (None, "deepseek-v3", "h200", True),
        (None, "deepseek-v3", "mi300x", False),
        (None, "qwen2.5-vl-7b-instruct", "h200", False),
        # 0.5.16 to 0.5.23 `configs/model_config.py` (`multimodal_breakable_cuda_graph_supported_model_archs`)
        ("0.5.15", "qwen3.5-35b-a3b", "h200", False),
        ("0.5.16", "qwen3.5-35b-a3b", "h200", True),
        ("0.5.17", "kimi-k2.5", "h200", False),
        (None, "kimi-k2.5", "h200", True),
        # 0.5.14 `configs/model_config.py` (`piecewise_cuda_graph_disabled_model_archs`)
        ("0.5.14", "qwen3-next-80b-a3b-instruct", "h200", False),
        ("0.5.15", "qwen3-next-80b-a3b-instruct", "h200", True),
        # 0.5.20 `arg_groups/cuda_graph_hook.py` ("DeepSeek-V4 (heavy capture-pool memory pressure)", "KDA")
        (None, "deepseek-v4-flash", "h200", False),
        ("0.5.19", "kimi-linear-48b-a3b-instruct", "h200", True),
        (None, "kimi-linear-48b-a3b-instruct", "h200", False),
    ],
)
def test_prompts_run_as_graphs_where_a_version_captures_them(
    catalog: Snapshot, version: str | None, model: str, gpu: str, captures: object
) -> None:
    rules = rules_for("sglang", version)
    reserve = rules.static_reserve
    assert reserve is not None
    assert reserve.prompts_uncaptured_for is not None

    architecture = catalog.model(model).architecture
    uncaptured = reserve.prompts_uncaptured_for
    assert captures_prompts(uncaptured, architecture, catalog.gpu(gpu), Layout(), rules.release) is captures


@pytest.mark.parametrize(
    ("engine", "model", "gpu", "ranks", "context", "part"),
    [
        ("sglang", "llama-3.1-8b", "mi300x", 1, 131_072, 0.85),
        ("sglang", "llama-3.1-8b", "mi300x", 1, 8_192, 1.0),
        ("sglang", "llama-3.1-8b", "h100", 1, 131_072, 1.0),
        ("vllm", "llama-3.1-8b", "mi300x", 1, 131_072, 1.0),
        ("sglang", "qwen3.6-27b", "mi355x", 1, 262_144, 0.85),
        ("sglang", "deepseek-v3", "mi300x", 8, 163_840, 0.85),  # 16 heads a rank
        ("sglang", "kimi-k2.5", "mi355x", 8, 262_144, 1.0),  # 8, which Triton runs
        ("sglang", "glm-5", "mi355x", 8, 202_752, 1.0),  # selected latents have a backend of their own
    ],
)
def test_sglang_sets_buffers_of_aiter_aside(
    catalog: Snapshot, engine: Literal["vllm", "sglang"], model: str, gpu: str, ranks: int, context: int, part: float
) -> None:
    """SGLang 0.5.9 to 0.5.23: "mem_fraction_static * 0.85" for contexts beyond 8,192 tokens."""
    rules, facts, stated = rules_for(engine), catalog.model(model), StatedSettings(max_model_len=context)
    settings = resolve(facts, catalog.gpu(gpu), stated, rules).settings

    layout = Layout(tensor_parallel_size=ranks)

    assert part_of_share(facts.architecture, catalog.gpu(gpu), layout, settings, rules) == part


@pytest.mark.parametrize(("ranks", "weights_gib", "tokens"), [(1, 28.49, 1_543_256), (2, 14.49, 3_228_418)])
def test_published_starts_on_rocm_have_the_pool_that_aiter_leaves(
    catalog: Snapshot, ranks: int, weights_gib: float, tokens: int
) -> None:
    """Qwen3.8-27B-FP8 in SGLang 0.5.17 on MI355X, `--mem-fraction-static 0.85`: "max_total_num_tokens=1543256"."""
    rules, facts = rules_for("sglang", "0.5.17"), catalog.model("qwen3.6-27b")
    stated = StatedSettings(gpu_memory_utilization=0.85, max_model_len=262_144)
    gpu, layout = catalog.gpu("mi355x"), Layout(tensor_parallel_size=ranks)
    settings = resolve(facts, gpu, stated, rules).settings

    memory = memory_per_gpu(
        architecture=facts.architecture, rank_weight_bytes=int(weights_gib * GIB), gpu=gpu, layout=layout,
        settings=settings, rules=rules,
    )  # fmt: skip

    pools = separate_pools(facts.architecture, layout, settings, memory.kv_cache_bytes)
    assert pools.tokens == pytest.approx(tokens, rel=0.04)
