"""What every layer variant must answer: one abstract base for mixers of tokens, one for feed-forward parts.

A variant is one file: fields are facts, methods are rules. Whoever plans asks a layer, and never which variant it is.

Sources: vLLM 0.33 `model_executor/layers/` and `models/` (`get_kv_cache_spec`, `create_weights`);
    Williams, Waterman, Patterson, Roofline (2009), for `Work`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Literal

from service.engine.formats.matrix import Matrix
from service.engine.inputs import NAMED_STATE_DTYPES, Layout, StateDtype
from service.engine.layers.cache import DEFAULT_BLOCK_SIZE, CacheSharing, CacheSpec, Checkpoint, Sharding
from service.engine.layers.heads import HeadDetails, Heads
from service.engine.layers.rotary import Rotated
from service.engine.layers.shapes import AttentionShape, DeltaShape, NetworkShape, Routing

FLOP_PER_MULTIPLICATION: Final = 2
UNBOUNDED: Final = float("inf")
ANY_PAGE: Final = 1  # [tokens]

DetailRule = Callable[[Heads], HeadDetails]
Role = Literal["attention", "recurrent", "none"]
DivisionRule = Literal["exact", "repeated", "rounded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Divisor:
    """A size that tensor parallelism cuts, and how.

    exact       it must divide: the engine refuses any remainder
    repeated    the same, but ranks beyond it hold one each
    rounded     what remains is rounded up
    """

    name: str  # as a person knows it
    size: int
    rule: DivisionRule = "exact"
    fills_blocks: bool = False  # a rank's part is whole blocks, where a checkpoint is quantized in blocks
    is_dealt_out: bool = False  # expert parallelism leaves it whole
    width: int = 0  # across the columns, where it is not the model's [elements]
    module: str = ""  # of the matrix, below its layer's name; empty where it is always quantized as the rest is


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How ranks may hold the tokens of one cache in turn (decode-context parallelism).

    Each head of keys and values needs as many ranks, and its queries divide over them. A latent is one head of all.
    """

    queries: int = 0
    key_values: int = 0  # 0 for a layer without tokens to share
    is_local: bool = False  # keeps a window or chunk, which cannot be spread
    is_on_one_rank: bool = False  # no kernel puts together what several ranks attend to


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelNeed:
    """What a kernel must do to run a layer's attention; an engine picks one by it and by the GPU.

    grouped   keys and values of several heads; `relative`, with a score for each distance
    latent    one latent for all heads, whole
    sparse    the same, of selected tokens
    indexer   which tokens a sparse kernel reads: whole multiples of `block_size`, on ROCm single ones too
    own       a kernel of the layer's own, in whole multiples of `block_size`; of `records`, in what the GPU decides
    """

    kind: Literal["grouped", "latent", "sparse", "indexer", "own", "records", "relative"]
    key_dim: int = 0  # of one head, or of a latent with its rotary part [elements]
    value_dim: int = 0  # of one head, or of a latent alone [elements]
    nope_dim: int = 0  # of a head's key without its rotary part, where latents are expanded [elements]
    rope_dim: int = 0  # of the rotary part [elements]
    top_k: int = 0  # selected tokens, where the layer selects itself
    has_sinks: bool = False
    keeps_model_dtype: bool = False  # of the cache, whatever is asked for
    reads_fp8_only: bool = False  # a cache of 16 bits is refused
    block_size: int = DEFAULT_BLOCK_SIZE  # [tokens]
    generations: tuple[int, ...] = ()  # of compute capability, whose GPUs alone run a kernel of its own; all if empty


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveElements:
    """What one layer holds at once during a step of many tokens, beside weights and cache. [elements]."""

    per_token: int  # where it is widest, before tensor parallelism divides it
    expanded_per_token: int = 0  # of an earlier token's keys and values, on one rank
    selected_ratio: int | None = None  # tokens behind one key, where an indexer gathers them; None without one
    buffer_bytes_per_token: int = 0  # that loading makes on every rank [bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one layer reads and multiplies on one rank beside its weights, for one request.

    bytes of a decode step = min(context / ratio, longest) x token bytes + state bytes + context x scan bytes
    flop of a pair         = of one query with one token that it attends to
    """

    token_bytes: float = 0.0  # of one cached token that is read
    state_bytes: float = 0.0  # of one request's state, read and written
    longest: float = 0.0  # tokens a query attends to at most
    ratio: float = 1.0  # cached tokens behind one that is read
    decode_flop_per_pair: float = 0.0
    prefill_flop_per_pair: float = 0.0
    scan_bytes: float = 0.0  # of every cached token, read to select which to attend to
    scan_flop_per_pair: float = 0.0

    def times(self, layers: int) -> "Work":
        """Return the work of so many layers alike.

        >>> Work(token_bytes=1_152.0, longest=UNBOUNDED).times(61).token_bytes
        70272.0
        """
        return replace(
            self,
            token_bytes=layers * self.token_bytes,
            state_bytes=layers * self.state_bytes,
            decode_flop_per_pair=layers * self.decode_flop_per_pair,
            prefill_flop_per_pair=layers * self.prefill_flop_per_pair,
            scan_bytes=layers * self.scan_bytes,
            scan_flop_per_pair=layers * self.scan_flop_per_pair,
        )


class Part(ABC):
    """What mixers and feed-forward parts have in common: weights, and how ranks split them."""

    __slots__ = ()

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether there is nothing there: no weights, no cache, no norm before it."""

    @abstractmethod
    def matrices(self, hidden_size: int, layout: Layout, prefix: str, /) -> list[Matrix]:
        """Return what one rank holds of the weights; `prefix` is the decoder layer's name with its dot."""

    @property
    @abstractmethod
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the sizes that tensor parallelism cuts."""

    @property
    @abstractmethod
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return the names of matrices that LoRA adapters change; None where their buffers have no rule."""


class Mixer(Part):
    """What lets tokens of a sequence see one another: attention, recurrence, or nothing."""

    __slots__ = ()

    @property
    @abstractmethod
    def role(self) -> Role:
        """Return whether the layer attends to cached tokens, carries a state along, or does neither."""

    @abstractmethod
    def caches(self, sharding: Sharding, /) -> tuple[CacheSpec, ...]:
        """Return what one rank keeps; nothing for a layer without cache, or with another layer's."""

    @property
    @abstractmethod
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return what kernels must do to read its caches; nothing where none reads them in blocks."""

    @property
    @abstractmethod
    def page_size(self) -> int | None:
        """Return the smallest page of a pool of such layers alone, as SGLang has; None without a rule. [tokens]."""

    @property
    @abstractmethod
    def spread(self) -> Spread:
        """Return how ranks may hold its cached tokens in turn."""

    @abstractmethod
    def live(self, tensor_parallel_size: int, /) -> LiveElements:
        """Return what is alive at once while the layer runs."""

    @property
    @abstractmethod
    def draft_attention(self) -> "Mixer | None":
        """Return the attention of an EAGLE head of such a model; None where it does not follow from this layer."""

    @abstractmethod
    def work(self, tensor_parallel_size: int, cache_element_bytes: int, /) -> Work:
        """Return what one rank reads and multiplies per request, beside the weights."""

    @property
    @abstractmethod
    def sharing(self) -> CacheSharing | None:
        """Return what its heads save by sharing keys and values; None where no rule counts heads."""

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return how prefill may keep its state on the way; None without one, or where it cannot."""
        return None

    @property
    def keeps_every_state(self) -> bool:
        """Return whether engines that could kept a state at every block of a prefix, before they kept two in all."""
        return False

    @property
    def state_matrix_dtypes(self) -> tuple[StateDtype, ...]:
        """Return what vLLM can be told to keep the matrices of a state in; none where it keeps to its own."""
        return NAMED_STATE_DTYPES

    @property
    @abstractmethod
    def rotated(self) -> Rotated | None:
        """Return what is turned by position; None where nothing is, or the family has tables of its own."""

    @abstractmethod
    def detailed(self, details: DetailRule, /) -> "Mixer":
        """Return the layer with what its family gives softmax heads; itself where it has no such heads."""

    def projecting_all(self) -> "Mixer":
        """Return the layer with keys and values of its own, where it reads another's cache; else itself."""
        return self

    def indexed_like(self, _others: "Iterable[Mixer]", /) -> "Mixer":
        """Return the layer with an indexer like another's, where it reuses a selection; else itself."""
        return self

    def with_heads(self, _width: int, /) -> "Mixer":
        """Return the layer with keys and values of all heads in its cache, so wide, for latents; else itself."""
        return self

    @property
    def shape(self) -> AttentionShape | DeltaShape | None:
        """Return the sizes that its kernels are measured by; None where they are no usual ones."""
        return None

    @property
    def is_attention(self) -> bool:
        """Return whether the layer attends to cached tokens, its own or another layer's."""
        return self.role == "attention"

    @property
    def is_recurrent(self) -> bool:
        """Return whether the layer carries a state of fixed size along each request."""
        return self.role == "recurrent"

    @property
    def chunks_states(self) -> bool:
        """Return whether kernels that read prompts in chunks take those that decode beside them as well."""
        return False

    @property
    def is_empty(self) -> bool:
        """Return whether the layer neither attends nor carries a state."""
        return self.role == "none"


class FeedForward(Part):
    """What follows the mixer in a layer and sees one token at a time: dense, experts, or nothing."""

    __slots__ = ()

    @property
    @abstractmethod
    def routing(self) -> Routing | None:
        """Return how tokens are dealt over experts; None without experts."""

    @property
    @abstractmethod
    def live_elements(self) -> int:
        """Return what is alive at once per token, before tensor parallelism divides it. [elements]."""

    @abstractmethod
    def workspace_elements(self, hidden_size: int, layout: Layout, /) -> int:
        """Return the buffers per token, on one rank, that layers of experts share. [elements]."""

    @property
    @abstractmethod
    def active_columns(self) -> int:
        """Return the columns that one token passes through: how wide the network of a draft for it is."""

    @property
    def shape(self) -> NetworkShape | None:
        """Return the sizes that its kernels are measured by; None where they are no usual ones."""
        return None

    @property
    def has_experts(self) -> bool:
        """Return whether tokens are dealt over experts."""
        return self.routing is not None

    @property
    def has_own_kernel(self) -> bool:
        """Return whether experts run in a kernel that no other model's do."""
        return False
