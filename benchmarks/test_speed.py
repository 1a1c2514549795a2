"""Speed, reported and never asserted: `make bench`."""

from dataclasses import replace
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.keeper import seeded_snapshot
from service.catalog.snapshot import Snapshot
from service.engine.answers.recommend import recommend
from service.engine.answers.size import size
from service.engine.fleet.questions import RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import Headroom, Layout, Limits, Load, StatedLayout
from service.engine.memory.plan import memory_plan
from service.engine.memory.shared_pool import plan_kv_cache
from service.performance.timers import KernelTimers

RULES = rules_for("vllm")
SAME_QUESTION = "the same 70B question, each by its own search: ratios stand in brackets"


@pytest.fixture(scope="module")
def catalog() -> Snapshot:
    return seeded_snapshot()


@pytest.fixture(scope="module")
def timers() -> KernelTimers:
    return KernelTimers()


def load(requests: int) -> Load:
    return Load(concurrent_requests=requests, request_rate_per_s=None, input_tokens=2_000, output_tokens=500)


@pytest.mark.parametrize(
    "model", ["llama-3.3-70b", "deepseek-v3", "gemma-3-27b", "qwen3-next-80b-a3b", "deepseek-v4-pro"]
)
def test_full_memory_plan(benchmark: Any, catalog: Snapshot, model: str) -> None:
    facts, gpu = catalog.model(model), catalog.gpu("h100")
    resolved = resolve(facts, gpu, StatedSettings(), RULES)
    lengths = iter(range(1, 10**9))

    def plan() -> object:  # a length nobody asked for yet, so that no plan is remembered
        return memory_plan(
            facts,
            resolved.checkpoint,
            gpu,
            Layout(tensor_parallel_size=8),
            resolved.settings,
            RULES,
            input_tokens=1 + next(lengths) % 4_096,
            output_tokens=next(lengths),
            shorten_to_fit=False,
        )

    benchmark(plan)


def test_cache_plan(benchmark: Any, catalog: Snapshot) -> None:
    facts = catalog.model("llama-3.3-70b")
    resolved = resolve(facts, catalog.gpu("h100"), StatedSettings(), RULES)

    benchmark(plan_kv_cache, facts.architecture, layout=Layout(), settings=resolved.settings, available_bytes=1 << 35)


def test_size(benchmark: Any, catalog: Snapshot) -> None:
    requests = iter(range(1, 10**9))

    def answer() -> object:
        return size(
            SizeQuestion(
                model=catalog.model("llama-3.3-70b"),
                gpu=catalog.gpu("h100"),
                load=load(next(requests)),
                limits=Limits(),
                layout=StatedLayout(),
                headroom=Headroom(),
                settings=StatedSettings(),
                rules=RULES,
                offers=catalog.offers,
            )
        )

    benchmark(answer)


def timed_question(catalog: Snapshot, timers: KernelTimers, requests: int, input_tokens: int = 1_000) -> SizeQuestion:
    return SizeQuestion(
        model=catalog.model("llama-3.3-70b"),
        gpu=catalog.gpu("h100"),
        load=Load(concurrent_requests=requests, request_rate_per_s=None, input_tokens=input_tokens, output_tokens=200),
        limits=Limits(ttft_s=0.5, tpot_s=0.04),
        layout=StatedLayout(),
        headroom=Headroom(),
        settings=StatedSettings(weight_format="fp8"),
        rules=RULES,
        offers=catalog.offers,
        timers=timers,
    )


@pytest.mark.benchmark(group=SAME_QUESTION)
def test_size_with_limits_at_another_load(benchmark: Any, catalog: Snapshot, timers: KernelTimers) -> None:
    requests = iter(range(1, 10**9))

    benchmark(lambda: size(timed_question(catalog, timers, 1 + next(requests) % 900)))


def test_size_with_limits_at_another_rate(benchmark: Any, catalog: Snapshot, timers: KernelTimers) -> None:
    rates = iter(range(1, 10**9))

    def answer() -> object:
        question = timed_question(catalog, timers, 1)
        rate = replace(question.load, concurrent_requests=None, request_rate_per_s=1 + 0.37 * (next(rates) % 200))
        return size(replace(question, load=rate))

    answer()
    benchmark(answer)


def test_size_with_limits_at_other_lengths(benchmark: Any, catalog: Snapshot, timers: KernelTimers) -> None:
    lengths = iter(range(1_000, 10**9))

    benchmark.pedantic(
        lambda: size(timed_question(catalog, timers, 100, input_tokens=next(lengths))), rounds=20, warmup_rounds=1
    )


def test_aiconfigurators_own_estimate_of_the_same_question(benchmark: Any) -> None:
    """One static batch of the same lengths on the same GPUs: what the library answers, without a queue."""
    from aiconfigurator_core.sdk.engine import EngineHandle  # noqa: PLC0415 - part of what is timed is not its import

    handle = EngineHandle.compile(
        "meta-llama/Meta-Llama-3.1-70B",
        "h100_sxm",
        "vllm",
        tp_size=4,
        gemm_quant_mode="fp8",
        kvcache_quant_mode="bfloat16",
    )

    benchmark(handle.run_static, batch_size=25, isl=1_000, osl=200)


@pytest.mark.benchmark(group=SAME_QUESTION)
def test_aiconfigurators_own_search_of_the_same_question(benchmark: Any) -> None:
    """Its sweep over batches and prompt tokens within the same limits, on as many GPUs as Sizer looks at."""
    from aiconfigurator_core.sdk.backends.factory import get_backend  # noqa: PLC0415 - as above
    from aiconfigurator_core.sdk.config import RuntimeConfig  # noqa: PLC0415 - as above
    from aiconfigurator_core.sdk.config_builders import build_model_config  # noqa: PLC0415 - as above
    from aiconfigurator_core.sdk.models import get_model  # noqa: PLC0415 - as above
    from aiconfigurator_core.sdk.perf_database import get_database, get_supported_databases  # noqa: PLC0415 - as above

    kernels = get_database("h100_sxm", "vllm", get_supported_databases()["h100_sxm"]["vllm"][-1])
    asked = RuntimeConfig(isl=1_000, osl=200, ttft=500.0, tpot=40.0)
    assert kernels is not None

    def best_of(ranks: int) -> object:
        config = build_model_config(
            tp_size=ranks,
            pp_size=1,
            attention_dp_size=1,
            moe_tp_size=1,
            moe_ep_size=1,
            gemm_quant_mode="fp8",
            kvcache_quant_mode="bfloat16",
        )
        model = get_model("meta-llama/Meta-Llama-3.1-70B", config, "vllm")
        return get_backend("vllm").find_best_agg_result_under_constraints(model, kernels, asked)

    benchmark.pedantic(lambda: [best_of(ranks) for ranks in (1, 2, 4, 8)], rounds=3, warmup_rounds=1)


def test_recommend_over_the_whole_catalog(benchmark: Any, catalog: Snapshot) -> None:
    requests = iter(range(1, 10**9))

    def answer() -> object:
        return recommend(
            RecommendQuestion(
                model=catalog.model("qwen3-32b"),
                gpus=tuple(catalog.gpus.values()),
                load=load(next(requests)),
                limits=Limits(),
                layout=StatedLayout(),
                headroom=Headroom(),
                settings=StatedSettings(),
                rules=RULES,
                offers=catalog.offers,
            )
        )

    benchmark(answer)
