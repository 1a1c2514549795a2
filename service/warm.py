"""What is made ready before anybody asks: words of names, step times of popular models, or of the whole catalog."""

from collections.abc import Iterable, Iterator
from typing import Final

from service.catalog.engine_rules import rules_for
from service.catalog.errors import NotInCatalogError
from service.catalog.names import taken_out
from service.catalog.snapshot import Snapshot
from service.engine.engines.registry import DEFAULT_ENGINE
from service.engine.facts import ModelFacts
from service.engine.inputs import Gpu
from service.engine.time.steps import Deployed
from service.performance.warming import deployments_of

# In this order: the systems most questions are about come first.
COMMON_GPUS: Final = (
    "h100-sxm-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "a100-sxm-80gb",
    "l40s",
    "gb200-nvl72",
    "b300-sxm-288gb",
    "gb300-nvl72",
    "rtx-pro-6000-server",
)
POPULAR_MODELS: Final = (
    "llama-3.1-8b-instruct",
    "llama-3.3-70b-instruct",
    "qwen3-32b",
    "gpt-oss-120b",
    "qwen3-30b-a3b",
    "gpt-oss-20b",
    "qwen3-8b",
    "deepseek-v3",
    "deepseek-r1",
    "qwen3-235b-a22b",
    "llama-4-scout",
)


def asked_most(snapshot: Snapshot) -> Iterator[Deployed]:
    """Yield the deployments of popular models on common GPUs, as far as a catalog has both; names are read first."""
    snapshot.called_models.make_ready()
    taken_out.make_ready()
    yield from deployments_of(_models(snapshot, POPULAR_MODELS), _gpus(snapshot), rules_for(DEFAULT_ENGINE))


def whole_catalog(snapshot: Snapshot) -> Iterator[Deployed]:
    """Yield the deployments of every model on common GPUs."""
    sizable = [entry.id for entry in snapshot.entries.models if snapshot.refusal(entry.id) is None]
    return deployments_of(_models(snapshot, sizable), _gpus(snapshot), rules_for(DEFAULT_ENGINE))


def _models(snapshot: Snapshot, names: Iterable[str]) -> list[ModelFacts]:
    found = []
    for name in names:
        try:
            found.append(snapshot.model(name))
        except NotInCatalogError:
            continue
    return found


def _gpus(snapshot: Snapshot) -> list[Gpu]:
    return [snapshot.gpus[name] for name in COMMON_GPUS if name in snapshot.gpus]
