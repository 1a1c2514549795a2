"""A price that changes: the same question is answered again of kept pieces, and nothing dear is done twice."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from service.catalog.snapshot import Snapshot, build_snapshot
from service.performance.timers import KernelTimers
from service.questions.answers import Answer
from service.questions.registry import QUESTIONS
from service.questions.sources import PastedModels, Sources
from tests.conftest import shared_catalog, shared_timers
from tests.work import functions_of

# A plan, weights, a simulation, a table of step times: what a first answer takes its time for.
DEAR = (
    "engine.memory.plan:memory_plan", "engine.memory.weights:rank_weights", "engine.time.simulation:Machine.simulated",
    "performance.timers:build_timer", "performance.roofline:roofline_tables",
)  # fmt: skip
LENGTHS = {"input_tokens": 1_000, "output_tokens": 200}
ASKED: Mapping[str, tuple[str, dict[str, Any]]] = {
    "users": ("size", {"model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 64, "tpot_s": 0.05, **LENGTHS}),
    "arrivals": ("size", {"model": "qwen3-32b", "gpu": "l40s", "request_rate_per_s": 4, "ttft_s": 2.0, **LENGTHS}),
    "experts": ("size", {"model": "mixtral-8x7b", "gpu": "h100", "concurrent_requests": 32, **LENGTHS}),
    "pods": ("replicas", {"model": "llama-3.1-8b", "gpu": "h100", "request_rate_per_s": 30, **LENGTHS}),
    "given GPUs": ("capacity", {"model": "llama-3.1-8b", "gpu": "h100", "ttft_s": 1.0, **LENGTHS}),
    "options": ("recommend", {"model": "llama-3.1-8b", "concurrent_requests": 64, "gpus": ["h100", "l40s"], **LENGTHS}),
    "rows": ("compare", {"models": ["llama-3.1-8b"], "gpus": ["h100", "l40s"], "concurrent_requests": [64], **LENGTHS}),
}


class Service:
    """A catalog whose prices change, and answers that are never kept whole."""

    def __init__(self, catalog: Snapshot, timers: KernelTimers) -> None:
        self.catalog, self._timers, self._pasted_models = catalog, timers, PastedModels()

    def answer(self, asked: tuple[str, dict[str, Any]]) -> Answer[Any]:
        name, fields = asked
        question = next(question for question in QUESTIONS if question.name == name)
        sources = Sources(catalog=self.catalog, timers=self._timers, pasted_models=self._pasted_models)
        return question.body.model_validate(fields).answer(sources)

    def change_prices(self, factor: Callable[[], float]) -> None:
        """Change the price of every offer of the GPUs in question, as writes to the catalog do."""
        entries = self.catalog.entries
        offers = tuple(
            offer.model_copy(update={"usd_per_hour": offer.usd_per_hour * factor()})
            if offer.gpu in ("h100-sxm-80gb", "l40s-48gb")
            else offer
            for offer in entries.offers
        )
        self.catalog = build_snapshot(
            entries.model_copy(update={"revision": entries.revision + 1, "offers": offers}), self.catalog
        )


@pytest.fixture(scope="module")
def catalog() -> Snapshot:
    """A catalog that nobody has asked: what other tests had kept of its models is none of this one's."""
    return build_snapshot(shared_catalog().entries)


@pytest.fixture(scope="module")
def timers() -> KernelTimers:
    return shared_timers()


@pytest.mark.parametrize("name", ASKED)
def test_after_a_price_change_nothing_dear_is_done_again(name: str, catalog: Snapshot, timers: KernelTimers) -> None:
    service = Service(catalog, timers)
    first = service.answer(ASKED[name])
    warm = functions_of(lambda: service.answer(ASKED[name]))

    service.change_prices(lambda: 1.5)
    done = functions_of(lambda: service.answer(ASKED[name]))
    service.change_prices(lambda: 1.5)
    again = functions_of(lambda: service.answer(ASKED[name]))

    assert {each: (done[each], again[each]) for each in DEAR if done[each] or again[each]} == {}
    assert again.total() <= 2 * warm.total(), (again - warm).most_common(20)
    assert first.result.feasible


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_answer_is_that_of_a_service_that_knew_no_other_price(
    name: str, seed: int, catalog: Snapshot, timers: KernelTimers
) -> None:
    service, random = Service(catalog, timers), Random(seed)
    service.answer(ASKED[name])
    service.change_prices(lambda: random.uniform(0.2, 5.0))  # which of two is cheaper changes too
    fresh = Service(build_snapshot(service.catalog.entries), timers)

    assert service.answer(ASKED[name]).json == fresh.answer(ASKED[name]).json
