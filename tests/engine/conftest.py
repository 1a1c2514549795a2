"""Questions about an 8B model on H100, timed by kernels that were measured on it."""

from collections.abc import Callable
from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.fleet.questions import CapacityQuestion, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.inputs import Headroom, Limits, Load, StatedLayout
from service.performance.timers import KernelTimers
from tests.conftest import shared_timers

Asked = Callable[..., SizeQuestion]


def users(count: int | None, input_tokens: int = 1_000, output_tokens: int = 200) -> Load:
    return Load(
        concurrent_requests=count, request_rate_per_s=None, input_tokens=input_tokens, output_tokens=output_tokens
    )


def arrivals(rate: float, input_tokens: int = 1_000, output_tokens: int = 200) -> Load:
    return Load(
        concurrent_requests=None, request_rate_per_s=rate, input_tokens=input_tokens, output_tokens=output_tokens
    )


@pytest.fixture(scope="session")
def timers() -> KernelTimers:
    return shared_timers()


@pytest.fixture
def asked(catalog: Snapshot, timers: KernelTimers) -> Asked:
    """Return a maker of questions how many GPUs."""

    def question(model: str = "llama-3.1-8b", gpu: str = "h100", **changes: Any) -> SizeQuestion:
        values: dict[str, Any] = {
            "load": users(64),
            "limits": Limits(),
            "layout": StatedLayout(),
            "headroom": Headroom(),
            "settings": StatedSettings(),
            "rules": rules_for("vllm"),
            "timers": timers,
            **changes,
        }
        return SizeQuestion(model=catalog.model(model), gpu=catalog.gpu(gpu), **values)

    return question


def capacity_of(question: SizeQuestion, gpu_count: int) -> CapacityQuestion:
    """Return the question how much load so many GPUs carry."""
    return CapacityQuestion(
        model=question.model,
        gpu=question.gpu,
        gpu_count=gpu_count,
        load=question.load,
        input_tokens=question.load.input_tokens,
        output_tokens=question.load.output_tokens,
        limits=question.limits,
        layout=question.layout,
        settings=question.settings,
        rules=question.rules,
        timers=question.timers,
    )


def recommendation_of(question: SizeQuestion, catalog: Snapshot, *gpus: str, **changes: Any) -> RecommendQuestion:
    """Return the question which of some GPUs."""
    return RecommendQuestion(
        model=question.model,
        gpus=tuple(catalog.gpu(name) for name in gpus),
        load=question.load,
        limits=question.limits,
        headroom=question.headroom,
        settings=question.settings,
        layout=question.layout,
        rules=question.rules,
        offers=catalog.offers,
        timers=question.timers,
        **changes,
    )
