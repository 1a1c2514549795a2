"""What SGLang's classes hold otherwise than vLLM's: embeddings, output heads, experts, and the tower for images.

Source:
    SGLang 0.5.9 to 0.5.23 `models/kimi_k25.py` ("self.mlp = MLP2("), `models/kimi_vl_moonvit.py` (`MLP2`:
    "self.fc0 = nn.Linear(dims[0], dims[1], bias=bias)" where nobody asks for tensor parallelism); of other classes
    what `families/in_sglang.py` names.
"""

from dataclasses import replace

from service.engine.derived import derived
from service.engine.engines.classes import is_within
from service.engine.engines.device import Device
from service.engine.engines.expert_kernels import ExpertKernels, expert_kernels
from service.engine.engines.plans import PlanRules
from service.engine.formats.quantization import Quantization
from service.engine.layers import Architecture, Encoder

HALF_TILES_SINCE = "0.5.23"  # of gated experts in NVFP4: `layers/quantization/modelopt_quant.py` ("64 ... is_gated")


def as_held(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as an engine's own class spreads it over stages and ranks."""
    return _held(architecture) if plan.has_own_classes else architecture


@derived(1)
def _held(architecture: Architecture) -> Architecture:
    tower = _tower(architecture)
    if tower is architecture.encoder and architecture.ends == architecture.sglang_ends:
        return architecture
    return replace(architecture, encoder=tower, ends=architecture.sglang_ends)


def kernels_as_run(architecture: Architecture, quantization: Quantization, device: Device) -> ExpertKernels:
    """Return a GPU's kernels for a model's experts, which SGLang chooses by class and format on Blackwell."""
    kernels, tile = expert_kernels(device), device.expert_tile
    since = dict(architecture.padded_in_sglang).get(quantization.scheme)
    if since is None or tile == 1 or quantization.is_compressed_tensors or not is_within(device.release, since, ""):
        return kernels
    if quantization.scheme == "nvfp4" and is_within(device.release, HALF_TILES_SINCE, ""):
        tile //= 2
    return replace(kernels, storage=replace(kernels.storage, inner_of=((quantization.scheme, tile),)))


def _tower(architecture: Architecture) -> Encoder | None:
    tower = architecture.encoder
    if tower is None or architecture.sglang_tower == "none":
        return None
    if architecture.sglang_tower == "whole":
        return tower.whole()
    if architecture.sglang_tower == "padded":
        return tower.padded()
    return tower.copied() if tower.copied_parameters else tower
