"""What a serving engine does its own way, whatever its version; one file each says it.

What changes with versions are the rows of `catalog/data/engine_rules.yaml`, read into `rules.EngineRules`, and rules
in code that take a version. Its command line, which names what was sized, is a value of its own, of `engines/flags/`.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal

from packaging.version import Version

from service.engine.engines.flags.base import CommandLine
from service.engine.engines.plans import PlanRules
from service.engine.inputs import EngineName, Gpu, LengthDistribution

# What the utilization is a share of: the whole memory (vLLM), the memory before weights are loaded, for
# weights and cache alone (SGLang), or what weights and activations leave free (TensorRT-LLM).
MemoryShare = Literal["total", "static", "free"]

# Of all tokens, or of several in one: latents whose kernels were measured with the matrices around them.
Latents = Literal["whole", "compressed"]

# What an engine may be told to do its own way, by the name of the field in a question.
Switch = Literal[
    "quantization", "enforce_eager", "enable_prefix_caching", "language_model_only", "swa_full_tokens_ratio",
    "mamba_cache_dtype", "mamba_ssm_cache_dtype", "all2all_backend", "enable_two_batch_overlap",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """The memory of one GPU, and what is taken of it beside the cache. [bytes]."""

    total_bytes: int
    weight_bytes: int
    activation_bytes: int
    graph_bytes: int
    non_torch_bytes: int

    @property
    def left_bytes(self) -> int:
        """Return what is left on the device; negative when nothing is."""
        return self.total_bytes - self.weight_bytes - self.activation_bytes - self.graph_bytes - self.non_torch_bytes


def nearest_known(version: Version, oldest: str, newest: str) -> str | None:
    """Return the nearest of the versions that rules are known for; None where the version is one of them.

    >>> nearest_known(Version("0.6.3"), "0.8", "0.33"), nearest_known(Version("0.33.1"), "0.8", "0.33")
    ('0.8', None)
    """
    last = Version(newest)
    if version < Version(oldest):
        return oldest
    is_newer = version > last and version.release[: len(last.release)] != last.release
    return newest if is_newer else None


class Engine(ABC):
    """One serving engine: how it sizes its pool, what it keeps apart, how it admits requests."""

    @property
    @abstractmethod
    def name(self) -> EngineName:
        """Return the name in questions and answers."""

    @property
    @abstractmethod
    def title(self) -> str:
        """Return the name as its makers write it."""

    @property
    @abstractmethod
    def newest(self) -> str:
        """Return the newest release, or series of releases, whose source was read."""

    @property
    def unstated_release(self) -> str:
        """Return the release whose classes serve where nobody states one; empty where the newest read is released."""
        return ""

    @property
    @abstractmethod
    def memory_share(self) -> MemoryShare:
        """Return what the utilization is a share of."""

    @property
    @abstractmethod
    def has_pool_per_kind(self) -> bool:
        """Return whether each kind of layer has a pool of its own; else all share one of equal pages."""

    @property
    @abstractmethod
    def reserves_output(self) -> bool:
        """Return whether a request is admitted only when the blocks of its whole output are free."""

    @property
    def expects_output(self) -> bool:
        """Return whether a request joins only beside a share of what others have yet to write; see `time/room`."""
        return False

    @property
    def starts_beside_small_pools(self) -> bool:
        """Return whether it starts with a pool that holds no whole context, and refuses requests beyond the pool."""
        return False

    @property
    def benchmark_lengths(self) -> LengthDistribution:
        """Return how lengths spread in its own benchmark of random prompts, where nobody says it; else as in life."""
        return "uniform"

    def part_of_share(self, gpu: Gpu, context_tokens: int, heads: int | None) -> float:  # noqa: ARG002 - of SGLang's
        """Return what is left of a share, stated or its own, once kernels' buffers are set aside. [fraction].

        Args:
            gpu: whose kernels run.
            context_tokens: served. [tokens]
            heads: of one rank's latent attention; None where attention is by heads; 0 where neither is known.
        """
        return 1.0

    def own_requests(self, requests: int, *, compresses_past: bool) -> int:  # noqa: ARG002 - of SGLang's
        """Return how many requests run where nobody states it, of the number that goes by a GPU's memory. [count]."""
        return requests

    @property
    def selects_in_fp8_from(self) -> int | None:
        """Return the generation from which on caches of selected latents are fp8 unless stated; None of no engine's."""
        return None

    @property
    def deals_mxfp4_from(self) -> int:
        """Return the generation of NVIDIA's GPUs from which on experts in mxfp4 that are dealt out whole stay so."""
        return 0

    @property
    def copies_step_together(self) -> bool:
        """Return whether copies of the attention, whose tokens meet in experts, read prompts whenever each has some.

        Every step takes as long as the slowest copy's: vLLM 0.33 `v1/worker/dp_utils.py`
        (`coordinate_batch_across_dp`), SGLang 0.5.23 `managers/scheduler_components/dp_attn.py`
        (`prepare_mlp_sync_batch_raw`).
        """
        return True

    @property
    @abstractmethod
    def reads_alone(self) -> bool:
        """Return whether prompts are read in iterations of their own, in which nobody decodes."""

    @property
    def rescales_contexts(self) -> bool:
        """Return whether a context is derived from the length a rope scaling starts from; else from the stated one."""
        return False

    @property
    @abstractmethod
    def spreads_caches(self) -> bool:
        """Return whether tensor-parallel ranks can hold the tokens of one cache in turn."""

    @property
    @abstractmethod
    def kernel_library(self) -> str:
        """Return the name under which published kernel times file it."""

    @property
    @abstractmethod
    def fp8_block_kernels(self) -> str:
        """Return the published kernel times that stand for dense matrices in blocks of fp8."""

    def all2all_backend(self, release: str) -> str | None:  # noqa: ARG002 - of some engines
        """Return by which backend tokens of experts are exchanged unless told, if all ranks gather all; else None.

        Args:
            release: as stated; empty where nobody states one.
        """
        return None

    def kernels_like(self, scheme: str, gpu_architecture: str) -> EngineName:  # noqa: ARG002 - of some engines
        """Return the engine whose measured kernels are those that run a format on a generation of GPUs."""
        return self.name

    @property
    def unpacks_by_marlin(self) -> bool:
        """Return whether Marlin's kernels multiply weights stored in fewer bits than a GPU multiplies."""
        return False

    @property
    def untuned_fp8_experts(self) -> frozenset[str]:
        """Return the generations of GPUs whose experts in fp8 without blocks were measured untuned."""
        return frozenset()

    def latent_kernels(self, latents: Latents, gpu_architecture: str) -> str | None:  # noqa: ARG002 - of some engines
        """Return the published kernel times that stand for layers of latents in fp8; None: those of their matrices."""
        return None

    @property
    @abstractmethod
    def switches(self) -> frozenset[Switch]:
        """Return what it can be told, where there is a rule for what that changes."""

    @property
    @abstractmethod
    def command_line(self) -> CommandLine:
        """Return how it is started."""

    @abstractmethod
    def cache_bytes(self, spent: Spent, share: float, *, counts_graphs: bool) -> int:
        """Return what the budget leaves for the cache; negative when nothing is left. [bytes].

        Args:
            spent: the GPU's memory and what is taken of it.
            share: the utilization, of what `memory_share` says. [fraction]
            counts_graphs: the version takes its estimate of the graphs out of the budget. [yes or no]
        """

    @abstractmethod
    def working_bytes(self, sampler: int, forward: int, encoder: int) -> int:
        """Return the memory of buffers that are in use one after the other. [bytes]."""

    @abstractmethod
    def plan(self, version: Version) -> PlanRules:
        """Return how a version plans caches and weights."""

    @abstractmethod
    def planned_as(self, version: Version) -> str | None:
        """Return whose rules plan caches and weights and judge layouts; None where they are the version's own."""
