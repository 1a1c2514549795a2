"""One stated replica: what it holds, with every setting that nobody stated at the engine's own default."""

from service.engine.engines.rules import EngineRules
from service.engine.facts import ModelFacts
from service.engine.fleet.planned import planned
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.inputs import Gpu, Layout
from service.engine.memory.plan import MemoryPlan


def plan_replica(
    model: ModelFacts,
    gpu: Gpu,
    layout: Layout,
    stated: StatedSettings,
    rules: EngineRules,
    *,
    input_tokens: int = 0,
    output_tokens: int = 0,
) -> MemoryPlan:
    """Return the memory plan of one replica as its engine would start it.

    Args:
        model: the model's architecture and checkpoints.
        gpu: the GPU type.
        layout: how the replica is spread.
        stated: the settings that were stated.
        rules: the engine version's defaults and measured terms.
        input_tokens: mean prompt of the load; 0 where there is none. [tokens]
        output_tokens: mean completion of the load. [tokens]

    Raises:
        EngineError: the engine refuses to start so, or the settings contradict each other.
    """
    resolved = resolve(model, gpu, stated, rules, input_tokens + output_tokens)
    return planned(resolved, layout, input_tokens, output_tokens)
