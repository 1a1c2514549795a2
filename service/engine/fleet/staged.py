"""Which pipeline stages the serving engine would start."""

from typing import Final

from service.engine.engines.device import Device
from service.engine.errors import UnsupportedLayoutError
from service.engine.inputs import Layout
from service.engine.layers import Architecture
from service.engine.memory.stages import pipeline_stages

FIELD: Final = "pipeline_parallel_size"


def check_stages(architecture: Architecture, layout: Layout, device: Device) -> None:
    """Raise UnsupportedLayoutError if the engine cannot split a model into so many stages.

    Args:
        architecture: the model.
        layout: how one replica is spread.
        device: the GPU's generation and the engine's version.

    Sources:
        vLLM 0.33 ModelConfig.verify_with_parallel_config (`SupportsPP`), `layers/attention/attention.py`
        (`validate_kv_sharing_target`: the cache that a layer reads is of its own stage).
    """
    stages, layers = layout.pipeline_parallel_size, len(architecture.layers)
    if stages == 1:
        return
    if not (architecture.has_stages if device.is_vllm else device.name not in architecture.unstaged_by):
        detail = f"{device.engine} has no pipeline stages for {architecture.name}"
        raise UnsupportedLayoutError(detail, field=FIELD, accepted="1")
    if stages > layers:
        detail = f"{FIELD} {stages} exceeds the {layers} layers"
        raise UnsupportedLayoutError(detail, field=FIELD, accepted=f"1 to {layers}")
    parted = _parted_from_its_cache(architecture, stages) if device.is_vllm else None
    if parted is not None:
        reader, owner = parted
        detail = (
            f"{device.engine} wants a layer on the stage whose cache it reads: layer {reader} reads that of layer "
            f"{owner}, and {stages} stages part them"
        )
        raise UnsupportedLayoutError(detail, field=FIELD, accepted="1, or fewer stages")


def _parted_from_its_cache(architecture: Architecture, stages: int) -> tuple[int, int] | None:
    """Return the first layer that reads a cache of another stage, and whose; None where none does."""
    if not architecture.shared_caches:
        return None
    bounds = pipeline_stages(len(architecture.layers), stages)
    starts = [first for first, last in bounds for _ in range(first, last)]
    return next(((reader, owner) for reader, owner in architecture.shared_caches if owner < starts[reader]), None)
