"""What the command line of any engine has to say; one file each says how.

What an engine does is a method of `engines.base.Engine`; here it is only named.
"""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from service.engine.arithmetic import ceil_div
from service.engine.inputs import (
    HALF_FORMATS,
    EngineSettings,
    KvCacheDtype,
    Layout,
    SpeculativeMethod,
    StateDtype,
    WeightFormat,
)

Args = tuple[str, ...]
HEAD: Final = "HEAD_ADDRESS"  # of the first node, which the reader fills in
NODE: Final = "NODE_{}_ADDRESS"  # of the others, by their number
RENDEZVOUS_PORT: Final = 29500


@dataclass(frozen=True, slots=True, kw_only=True)
class StartFlags:
    """What the caller stated and engines have flags for; None, or False, where nobody did."""

    kv_cache_dtype: KvCacheDtype | None = None
    block_size: int | None = None  # [tokens]
    enforce_eager: bool = False
    enable_prefix_caching: bool | None = None
    language_model_only: bool = False
    swa_full_tokens_ratio: float | None = None  # [fraction]
    mamba_cache_dtype: StateDtype = "auto"
    mamba_ssm_cache_dtype: StateDtype = "auto"
    async_scheduling: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One replica as it was sized: everything that a command line can name."""

    layout: Layout
    settings: EngineSettings
    served: str  # the checkpoint's published name, or where it lies
    weight_format: WeightFormat  # that was sized
    own_format: WeightFormat  # of the model's own checkpoint
    is_published: bool  # a checkpoint in that format is known
    has_fp8_cache: bool = False  # by the checkpoint's own word
    reads_own_fp8_plain: bool = False  # by that word, where kernels pack what the flag calls fp8
    names_half_caches: bool = True  # the engine's version has words for caches of sixteen bits
    has_experts: bool = False
    needs_half: bool = False  # the GPU has no bfloat16
    has_own_code: bool = False  # the checkpoint brings code that engines run only when told to
    is_deprecated: bool = False  # how the checkpoint is stored, which this version loads only when told to
    names_own_format: bool = False  # its files are in the publisher's own format, which this version does not look for
    cuts_prompts: bool = True  # the engine does so by itself, where a step holds less than the longest
    avoids_deep_gemm: bool = False  # this version chooses it where its build has no kernels
    drafter: str = ""  # as the engine names who drafts, where not by the usual word
    expert_kernels: str = ""  # that have to be named; empty: the engine's own choice
    gpus_per_node: int = 8
    stated: StartFlags = StartFlags()

    @property
    def num_nodes(self) -> int:
        """Return the servers that one replica fills."""
        return ceil_div(self.layout.gpus_per_replica, self.gpus_per_node)

    @property
    def asked_cache_dtype(self) -> KvCacheDtype | None:
        """Return the dtype of the cache that has to be named; None where the engine's own has its way.

        A version without a word for sixteen bits keeps the model's own by itself, but of a checkpoint that says fp8.
        """
        if self.settings.kv_cache_dtype == "fp8":
            return "fp8"
        return self.stated.kv_cache_dtype if self.names_half_caches or self.has_fp8_cache else None


class CommandLine(ABC):
    """The command line of one serving engine."""

    fills_servers_in_turn: ClassVar[bool] = False  # a replica may take more GPUs of one server than of another

    @property
    @abstractmethod
    def program(self) -> Args:
        """Return the words before the model."""

    @property
    @abstractmethod
    def cache_dtypes(self) -> Mapping[KvCacheDtype, str]:
        """Return what the engine calls each dtype of the cache that can be asked for."""

    @property
    @abstractmethod
    def made_formats(self) -> Mapping[WeightFormat, Args]:
        """Return the flags that make a format of a checkpoint in 16 bits while it is loaded."""

    @property
    @abstractmethod
    def half(self) -> Args:
        """Return the flags that compute in float16 on a GPU without bfloat16."""

    @property
    @abstractmethod
    def own_code(self) -> Args:
        """Return the flags that let a checkpoint's own code run."""

    @property
    def own_format(self) -> Args:
        """Return the flags that read a checkpoint in its publisher's own format, where a version looks for none."""
        return ()

    @property
    def deprecated(self) -> Args:
        """Return the flags that load a checkpoint by a method which the engine is about to drop."""
        return ()

    @property
    @abstractmethod
    def without_flag(self) -> frozenset[str]:
        """Return the settings that no flag names, by their names in a question."""

    @property
    @abstractmethod
    def named_drafters(self) -> frozenset[SpeculativeMethod]:
        """Return the drafters that the arguments name: those that need no other checkpoint."""

    @property
    def copies_in_file(self) -> str:
        """Return what a file of settings says for copies of the attention, where no flag does."""
        return "data_parallel_size"

    @abstractmethod
    def sized(self, start: Start) -> Args:
        """Return the flags that reproduce what was sized, but for the format of the weights."""

    @property
    def decisive(self) -> Mapping[str, str]:
        """Return the flags without which something else starts than was sized, and what names it instead."""
        return {}

    def spreads_unevenly(self, start: Start) -> str | None:
        """Return why the engine does not start one replica over its servers; None where it does."""
        nodes, layout = start.num_nodes, start.layout
        ranks, stages = layout.gpus_per_replica, layout.pipeline_parallel_size
        if ranks % nodes:
            return f"{ranks} ranks are not as many on each of {nodes} servers"
        is_cut = stages % nodes and nodes % stages and ranks // stages <= start.gpus_per_node
        return f"{stages} stages are not as many on each of {nodes} servers" if is_cut else None

    @abstractmethod
    def over_nodes(self, start: Start, words: Args, flags: frozenset[str]) -> str:
        """Return the commands that start one replica over several nodes.

        Args:
            start: what to start.
            words: the command of one node alone.
            flags: those of the engine's version; empty where nobody knows.
        """

    @abstractmethod
    def most_sequences(self, batched_tokens: int, state_blocks: int | None) -> int | None:
        """Return the largest `max_num_seqs` with which the engine starts; None where it takes any.

        Args:
            batched_tokens: most tokens of one step. [tokens]
            state_blocks: the blocks that may hold a layer's state; None of a model without states.
        """

    def environment(self, start: Start) -> Args:  # noqa: ARG002 - of some engines
        """Return what is said before the program, by variables that have no flag."""
        return ()

    def loading(self, start: Start) -> Args | None:
        """Return the flags that load the model's own checkpoint in the format sized; None where no flag does."""
        if start.is_published:
            return ()
        return self.made_formats.get(start.weight_format) if start.own_format in HALF_FORMATS else None

    def arguments(self, start: Start) -> Args:
        """Return the flags that reproduce what was sized."""
        return (*self.sized(start), *(self.loading(start) or ()))

    def further(self, start: Start) -> Args:
        """Return the flags that the model and the GPU ask for."""
        is_half = start.needs_half and self.half[:1] != (self.loading(start) or ())[:1]
        told = (*(self.own_code if start.has_own_code else ()), *(self.own_format if start.names_own_format else ()))
        return (*(self.half if is_half else ()), *told, *(self.deprecated if start.is_deprecated else ()))

    def unnamed(self, start: Start) -> Args:
        """Return the settings that were sized and that the arguments cannot name, by their names in a question."""
        settings, stated = start.settings, start.stated
        dtypes: tuple[KvCacheDtype | None, ...] = (None, "auto", *self.cache_dtypes)
        asked = {
            "kv_cache_memory_bytes": settings.kv_cache_memory_bytes is not None,
            "block_size": stated.block_size is not None,
            "max_loras": settings.max_loras > 0,
            "data_parallel_size": start.layout.data_parallel_size > 1,
        }
        unnamed = {
            "weight_format": self.loading(start) is None,
            "kv_cache_dtype": stated.kv_cache_dtype not in dtypes and start.has_fp8_cache,
        } | {name: is_asked and name in self.without_flag for name, is_asked in asked.items()}
        return tuple(name for name, is_unnamed in unnamed.items() if is_unnamed)

    def names_drafter(self, settings: EngineSettings) -> bool:
        """Return whether the arguments say who drafts."""
        return settings.speculative_method in self.named_drafters

    def command(self, start: Start, args: Args, flags: frozenset[str]) -> str:
        """Return the command of every node of one replica, one line a node, each after a comment.

        Args:
            start: what to start.
            args: its flags.
            flags: those of the engine's version; empty where nobody knows.
        """
        words = (*self.environment(start), *self.program, start.served, *args)
        return shlex.join(words) if start.num_nodes == 1 else self.over_nodes(start, words, flags)


def unless_one(flag: str, size: int) -> Args:
    """Return a flag and its size; nothing for 1.

    >>> unless_one("--tp", 1), unless_one("--tp", 2)
    ((), ('--tp', '2'))
    """
    return () if size == 1 else (flag, str(size))


def by_node(commands: Sequence[Args]) -> str:
    """Return the command of each node, which its comment names."""
    lines = (f"# on node {node} of {len(commands)}\n{shlex.join(words)}" for node, words in enumerate(commands))
    return "\n".join(lines)
