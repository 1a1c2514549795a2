"""What decides which kernels an engine runs: the GPU's generation, and the engine's version."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from packaging.version import Version

from service.engine.derived import Derived, derived
from service.engine.engines.expert_tiles import ExpertTiles
from service.engine.engines.plans import NEWEST, PlanRules
from service.engine.engines.platforms import CUDA, Loads, loads_on
from service.engine.engines.rules import EngineRules
from service.engine.inputs import EngineName, Gpu

Capability = tuple[int, int]

TURING: Final[Capability] = (7, 5)
AMPERE: Final[Capability] = (8, 0)
ADA: Final[Capability] = (8, 9)
HOPPER: Final[Capability] = (9, 0)
SERVER_GPUS, RACK_GPUS = 8, 64  # that one fabric joins
# By generation, the second where a rank's columns of an expert are no whole tiles. Source: SGLang 0.5.12 to 0.5.19
# `layers/quantization/fp8.py` (`get_quant_method`), `mxfp4_flashinfer_cutlass_moe.py` ("multiples of 128"); its recipes
# of DeepSeek-V4-Pro name the first on H200 and B200.
FP4_TILE: Final = 128
FP4_SINCE: Final = 10  # compute capability that multiplies in fp4
FP4_KERNELS: Final = MappingProxyType(
    {"9": ("flashinfer_mxfp4", "marlin"), "10": ("flashinfer_mxfp4", "flashinfer_mxfp4")}
)
# Marlin's kernels, before SGLang 0.5.16, keep loaded scales in four bytes: on compute capability 12 under any tile.
WIDE_SCALES_TILE: Final = MappingProxyType({"9": FP4_TILE, "12": 1 << 30})


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU's generation under one version of an engine.

    GPUs of other vendors, and engines other than vLLM, are planned by the rules for Hopper, and refused what their
    platform does not load.
    """

    capability: Capability = HOPPER
    plan: PlanRules = NEWEST
    name: EngineName = "vllm"
    title: str = "vLLM"
    is_vllm: bool = True
    is_vllm_on_cuda: bool = True
    release: str = ""  # as stated; empty where nobody states one
    loads: Loads = CUDA
    unpacks_dealt_mxfp4: bool = False  # experts that ranks hold whole: SGLang before Blackwell
    selects_in_fp8: bool = False  # caches of selected latents are fp8 unless stated, unpacked: SGLang on Blackwell
    keeps_selected_plain: bool = False  # such caches are not packed where they are fp8: SGLang on Blackwell and ROCm
    fewest_exchanging: int = 0  # ranks from which DeepEP is sized: SGLang on Hopper and in racks of Blackwell
    own_tiles: ExpertTiles | None = None  # of gpt-oss's experts, in the engine's own kernels; None: in vLLM's
    expert_tile: int = 1  # and of experts without a gate, and unquantized ones of some classes
    unpacks_grouped: bool = False  # projections multiplied in groups, in two bytes: SGLang but on compute capability 10
    wide_scales_tile: int = 0  # fp4 experts in files of fp8 keep loaded scales, unless whole tiles of columns
    unpacks_fp8: bool = False  # of weights, before Ada: Marlin multiplies them in two bytes
    copies_fp4_scales: bool = False  # of experts in NVFP4: SGLang before Blackwell keeps room for a second one
    page_size: int = 1  # of plain attention in SGLang [tokens]
    fp4_kernels: tuple[str, str] | None = None  # of such experts, that a command has to name; None: the engine chooses
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)
    hashed: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Hash it once: it is part of most keys of what is kept, and a version's plan has dozens of fields."""
        stated = (
            self.capability,
            self.plan,
            self.name,
            self.is_vllm,
            self.is_vllm_on_cuda,
            self.selects_in_fp8,
            self.keeps_selected_plain,
            self.unpacks_dealt_mxfp4,
            self.own_tiles,
            self.expert_tile,
            self.unpacks_grouped,
            self.wide_scales_tile,
            self.unpacks_fp8,
            self.copies_fp4_scales,
            self.page_size,
            self.fp4_kernels,
            self.release,
            self.loads,
        )
        object.__setattr__(self, "hashed", hash(stated))

    def __hash__(self) -> int:
        """Return the hash of everything stated."""
        return self.hashed

    @property
    def generation(self) -> int:
        """Return the major number of the compute capability: 8 Ampere and Ada, 9 Hopper, 10 and 12 Blackwell."""
        return self.capability[0]

    @property
    def dotted(self) -> str:
        """Return the compute capability as data sheets write it."""
        return ".".join(map(str, self.capability))

    @property
    def engine(self) -> str:
        """Return the engine's name, and the version of vLLM, for a reader."""
        return f"vLLM {self.plan.version}" if self.is_vllm else self.title


REFERENCE: Final = Device()  # the newest vLLM on Hopper


def fewest_exchanging(gpu: Gpu) -> int:
    """Return the ranks from which DeepEP was measured: a joined server of Hopper, 16 in a rack; 0 of others. [count].

    Source: aiconfigurator-core 0.12 systems/data/{h100_sxm,gb200}/moe/sglang/0.5.10 (`wideep_generation_moe_perf`).
    """
    if gpu.architecture == "blackwell":
        return 16 if gpu.scale_up_domain_gpus >= RACK_GPUS else 0
    return SERVER_GPUS if gpu.architecture == "hopper" and gpu.scale_up_domain_gpus >= SERVER_GPUS else 0


def device_of(gpu: Gpu, rules: EngineRules) -> Device:
    """Return what a GPU is to an engine."""
    return _device(rules, gpu)


@derived(64)
def _device(rules: EngineRules, gpu: Gpu) -> Device:
    own = gpu.compute_capability
    major, _, minor = (own or "0").partition(".")
    capability = int(major), int(minor or 0)
    is_older = own is not None and capability < ADA
    if rules.engine == "vllm" and own is not None:
        return Device(capability=capability, plan=rules.plan, release=rules.release, unpacks_fp8=is_older)
    engine = rules.serving_engine
    first = engine.selects_in_fp8_from
    selects_in_fp8 = first is not None and int(major) >= first
    versions = (Version(rules.plan.version),) if rules.engine == "vllm" else ()
    return Device(
        plan=rules.plan,
        name=rules.engine,
        title=engine.title,
        is_vllm=rules.engine == "vllm",
        is_vllm_on_cuda=False,
        release=rules.release,
        loads=loads_on(gpu, rules.engine, *versions),
        unpacks_dealt_mxfp4=gpu.vendor == "nvidia" and int(major) < engine.deals_mxfp4_from,
        own_tiles=dict(rules.plan.own_tiles).get(int(major)),
        expert_tile=rules.plan.expert_tile_on_ten if major == "10" else 1,
        unpacks_grouped=rules.plan.unpacks_grouped and major != "10",
        wide_scales_tile=WIDE_SCALES_TILE.get(major, 0) if rules.plan.keeps_wide_scales else 0,
        page_size=rules.plan.page_on_ten if gpu.vendor == "nvidia" and major == "10" else 1,
        unpacks_fp8=is_older and engine.unpacks_by_marlin,
        copies_fp4_scales=rules.plan.copies_fp4_scales and gpu.vendor == "nvidia" and int(major) < FP4_SINCE,
        fp4_kernels=FP4_KERNELS.get(major) if rules.plan.names_fp4_kernels else None,
        selects_in_fp8=selects_in_fp8,
        fewest_exchanging=fewest_exchanging(gpu) if rules.plan.sends_to_experts else 0,
        keeps_selected_plain=selects_in_fp8 or (first is not None and gpu.vendor == "amd"),
    )
