"""One model or GPU as the seed files state it: what the examples of formulas compute with."""

from service.catalog.facts import gpu_facts, model_facts
from service.catalog.seed_files import seed_entries
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts
from service.engine.inputs import Gpu


def seeded_model(name: str) -> ModelFacts:
    """Return the model of this id or alias.

    Raises:
        EngineError: the engine refuses it.
        KeyError: there is none.
    """
    entry = next((entry for entry in seed_entries()[0] if name in (entry.id, *entry.aliases)), None)
    if entry is None:
        raise KeyError(name)
    facts = model_facts(entry)
    if isinstance(facts, EngineError):
        raise facts
    return facts


def seeded_gpu(name: str) -> Gpu:
    """Return the GPU of this id or alias.

    Raises:
        KeyError: there is none.
    """
    entry = next((entry for entry in seed_entries()[1] if name in (entry.id, *entry.aliases)), None)
    if entry is None:
        raise KeyError(name)
    return gpu_facts(entry)
