"""Which parts of a tower every rank holds whole, where an engine splits less of it than vLLM.

Source:
    SGLang 0.5.9 to 0.5.23 `models/kimi_k25.py` ("self.mlp = MLP2("), `models/kimi_vl_moonvit.py` (`MLP2`:
    "self.fc0 = nn.Linear(dims[0], dims[1], bias=bias)" where nobody asks for tensor parallelism).
"""

from dataclasses import replace

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture


def as_copied(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as an engine spreads it: with parts of its tower whole on every rank."""
    return _copied(architecture) if plan.copies_tower_parts else architecture


@derived(1)
def _copied(architecture: Architecture) -> Architecture:
    tower = architecture.encoder
    if tower is None or not tower.copied_parameters:
        return architecture
    return replace(architecture, encoder=tower.copied())
