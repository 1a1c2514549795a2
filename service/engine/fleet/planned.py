"""The memory plans of what is deployed: one for each layout that the engine would start."""

from service.engine.engines.device import device_of
from service.engine.fleet.layouts import candidate_layouts
from service.engine.fleet.settings import Resolved
from service.engine.inputs import Layout, StatedLayout
from service.engine.memory.plan import MemoryPlan, memory_plan


def legal_layouts(resolved: Resolved, stated: StatedLayout) -> tuple[Layout, ...]:
    """Return the layouts that the engine would start, smallest first.

    Raises:
        UnsupportedLayoutError: the engine refuses every layout with the stated parts.
    """
    return candidate_layouts(
        resolved.model.architecture,
        resolved.checkpoint.quantization,
        resolved.gpu,
        stated,
        device_of(resolved.gpu, resolved.rules),
    )


def planned(resolved: Resolved, layout: Layout, input_tokens: int, output_tokens: int) -> MemoryPlan:
    """Return the memory plan of one layout for requests of these lengths. [tokens]."""
    return memory_plan(
        resolved.model,
        resolved.checkpoint,
        resolved.gpu,
        layout,
        resolved.settings,
        resolved.rules,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        shorten_to_fit=resolved.shorten_to_fit,
    )
