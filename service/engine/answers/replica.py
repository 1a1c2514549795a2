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

        kv_cache = utilization x total - weights - activation - CUDA graphs - non-torch

    vLLM 0.19 said of Gemma 2 9B on an H100 with 79.19 GiB, of which it may use 0.95, "Available KV cache memory: 54.12
    GiB" and "Maximum concurrency for 8,192 tokens per request: 20.60x" (jgchn/llm-d-planner on GitHub,
    accuracy/results/v0.19.0/logs/google-gemma-2-9b-it--h100-80gb--tp1pp1dp1--8192.log):

    >>> from service.catalog.engine_rules import rules_for
    >>> from service.catalog.keeper import seeded_snapshot
    >>> catalog = seeded_snapshot()
    >>> gemma = catalog.model("gemma-2-9b")
    >>> h100 = catalog.gpu("h100")
    >>> stated = StatedSettings(gpu_memory_utilization=0.95, max_model_len=8_192, max_num_batched_tokens=8_192)
    >>> plan = plan_replica(gemma, h100, Layout(), stated, rules_for("vllm", "0.19"))
    >>> round(plan.memory.kv_cache_bytes / 2**30, 1), round(plan.kv_cache.max_concurrency, 1)
    (54.1, 20.6)

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
