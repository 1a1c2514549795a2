"""What SGLang's classes hold otherwise than vLLM's: embeddings, output heads, and the tower for images.

Source:
    SGLang 0.5.9 to 0.5.23 `models/kimi_k25.py` ("self.mlp = MLP2("), `models/kimi_vl_moonvit.py` (`MLP2`:
    "self.fc0 = nn.Linear(dims[0], dims[1], bias=bias)" where nobody asks for tensor parallelism); of other classes
    what `families/in_sglang.py` names.
"""

from dataclasses import replace

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture, Encoder


def as_held(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as an engine's own class spreads it over stages and ranks."""
    return _held(architecture) if plan.has_own_classes else architecture


@derived(1)
def _held(architecture: Architecture) -> Architecture:
    tower = _tower(architecture)
    if tower is architecture.encoder and architecture.ends == architecture.sglang_ends:
        return architecture
    return replace(architecture, encoder=tower, ends=architecture.sglang_ends)


def _tower(architecture: Architecture) -> Encoder | None:
    tower = architecture.encoder
    if tower is None or architecture.sglang_tower == "none":
        return None
    if architecture.sglang_tower == "whole":
        return tower.whole()
    if architecture.sglang_tower == "padded":
        return tower.padded()
    return tower.copied() if tower.copied_parameters else tower
