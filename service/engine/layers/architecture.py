"""A model as its published config states it: layers of mixers and feed-forward parts, and what stands around them.

    layers = ((mixers, feed-forward part), ...), of which most are alike

What a layer is made of answers for itself (`base.py`); the whole model only says which of them it has.

Source:
    Published `config.json` files, as `transformers` and vLLM 0.33 `model_executor/models/` read them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from service.engine.derived import Derived
from service.engine.formats.elements import dtype_bytes
from service.engine.formats.scheme import Scheme
from service.engine.inputs import EngineName
from service.engine.layers.base import FeedForward, Mixer, Part
from service.engine.layers.embeddings import PerLayerEmbeddings
from service.engine.layers.encoder import Encoder
from service.engine.layers.grouped import GroupedQueryAttention
from service.engine.layers.residual import AlternatingUpdates, GatedConnections
from service.engine.layers.rotary import RotaryTable
from service.engine.layers.shared_blocks import SharedBlocks
from service.engine.layers.sourced import SourcedAttention


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """Which pipeline stages and which ranks hold the embedding table and the output head."""

    repeats_table: bool = False  # every pipeline stage holds it
    repeats_head: bool = False
    has_whole_table: bool = False  # every tensor-parallel rank holds all of it
    more_heads: int = 0  # than one, or than none where the table serves as one


ONCE: Final = Ends()
SglangCopies = Literal["any", "whole", "none"]  # of the attention, that share experts: on how many ranks one stands
SglangTower = Literal["split", "padded", "whole", "none"]  # how its ranks hold a tower for images or sound


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderLayer:
    """One decoder layer: its token mixers (more than one where they run in parallel) and its feed-forward part."""

    index: int
    mixers: tuple[Mixer, ...]
    mlp: FeedForward

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return its mixers and its feed-forward part."""
        return (*self.mixers, self.mlp)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Architecture:
    """A model's structure. Compared and hashed by identity, so that plans can be cached per model."""

    name: str  # as the config's `architectures` states it
    dtype: str  # element type of unquantized weights and activations: bfloat16, float16, float32
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int  # longest context the model accepts [tokens]
    default_max_model_len: int  # what the engine serves when nobody states a length [tokens]
    former_max_model_len: int = (
        0  # both, for vLLM before it took YaRN for part of the stated length; 0: no other [tokens]
    )
    plain_max_model_len: int = 0  # both, for engines that take the stated length; 0: no other [tokens]
    layers: tuple[DecoderLayer, ...]
    ties_embeddings: bool = False
    norms_per_layer: int = 2  # of the width of the residual stream
    norm_biases: bool = False
    has_head_bias: bool = False
    is_hybrid: bool = True  # of a class that may mix attention and recurrence, even if this one does not
    has_attention_residuals: bool = False  # each part of a layer attends over earlier layers' outputs (Kimi K3)
    residual_streams: int = 1  # hyper-connections mix several, with fp32 weights of their own
    mixes_streams: bool = True  # into each other as well, not only in and out of a layer's parts
    joins_streams: bool = True  # before the output head, by weights
    gated_connections: GatedConnections | None = None  # of these streams, in the place of hyper-connections and norms
    hosted_parameters: int = 0  # of tables that lie in the host's memory
    hosts_fp8: bool = False  # in 8 bits, with a scale for 32 elements; else in the model's dtype
    is_convolved: bool = False  # keeps what convolutions take in; a loader of its own fills its experts
    runs_in_float16: bool = True  # else the engine refuses to, and loads it in float32 on GPUs without bfloat16
    deals_out_experts: bool = True  # else the engine refuses to give each rank whole ones
    drafts_beside_states: bool = False  # before vLLM drafted for every model with recurrent states
    hands_early_states: bool = True  # to a head that drafts with EAGLE-3; else vLLM refuses one
    early_states_over_stages: str = ""  # since which vLLM does so from one pipeline stage to the next; empty: none
    has_stages: bool = True  # else vLLM refuses to split it by layers
    ends: Ends = ONCE  # as vLLM's class holds them
    sglang_ends: Ends = ONCE
    sglang_tower: SglangTower = "split"
    sglang_copies: SglangCopies = "any"
    padded_in_sglang: tuple[tuple[Scheme, str], ...] = ()  # by scheme, since which version experts are on Blackwell
    keeps_features_on_hopper: bool = False  # SGLang: of images, beside its pool
    pools_all_in_sglang: bool = False  # of its layers, on every pipeline stage
    reads_text_in_sglang: bool = False  # alone, unless it is started with `--enable-multimodal`
    brings_code: bool = False  # its checkpoints carry code that the engine runs only when told to
    lacked_by: frozenset[EngineName] = frozenset()  # other engines, whose newest version has no class for it
    unstaged_by: frozenset[EngineName] = frozenset()  # other engines, that refuse to split it by layers
    images_captured_since: str = ""  # SGLang's first version that captures prompts in spite of images; empty: none
    prompts_left_out: tuple[str, str] | None = None  # from and until which SGLang captures none of its prompts
    lacked_until: Mapping[EngineName, str] = field(default_factory=dict)  # newest version known to have no class for it
    takes_adapters: bool = True  # else vLLM refuses LoRA
    vocabulary_adapted: tuple[str, str] | None = None  # versions of vLLM from and until which LoRA changes it
    table_adapted: str = ""  # from which on it changes the embedding table alone
    joined_inputs: tuple[str, frozenset[str]] = ("0", frozenset())  # since when LoRA takes their parts for one matrix
    last_vllm: str = ""  # the last version that has its class, where later ones do not
    sees_images_both_ways: bool = False  # tokens of one image attend to each other, later ones too
    both_ways_since: str = ""  # vLLM's first version that knows so; empty: every one that has its class
    prefers_fp8_cache: bool = False  # on GPUs whose sparse kernels read it plain, unless stated (GLM)
    shared_blocks: SharedBlocks | None = None
    per_layer_embeddings: PerLayerEmbeddings | None = None
    alternating_updates: AlternatingUpdates | None = None
    extra_parameters: int = 0  # learnt positions and the like, on every rank
    encoder: Encoder | None = None
    rotary_tables: tuple[RotaryTable, ...] = ()  # kept beside the weights
    tower_size: tuple[int, int] | None = None  # layers and width of a tower for images, as SGLang reads them
    has_window_pool: bool = False  # SGLang keeps its windowed layers in a pool of their own
    mtp: "DraftHead | None" = None  # multi-token prediction modules of the checkpoint, loaded only to draft
    # What the layers are made of, each kind once, in the order of first use.
    mixers: tuple[Mixer, ...] = field(init=False, repr=False)
    feed_forwards: tuple[FeedForward, ...] = field(init=False, repr=False)
    num_expert_layers: int = field(init=False, repr=False)
    shared_caches: tuple[tuple[int, int], ...] = field(init=False, repr=False)  # a layer, and the one whose it reads
    hosted_bytes: int = field(init=False, repr=False)  # of tables, in the host's memory
    derived: Derived = field(default_factory=Derived, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Collect the kinds of parts, about which most rules ask."""
        # Layers that are alike share their parts: what is the same object is compared once.
        mixers = {id(mixer): mixer for layer in self.layers for mixer in layer.mixers}
        feed_forwards = {id(layer.mlp): layer.mlp for layer in self.layers}
        has_experts = {identity: part.has_experts for identity, part in feed_forwards.items()}
        object.__setattr__(self, "mixers", tuple(dict.fromkeys(mixers.values())))
        object.__setattr__(self, "feed_forwards", tuple(dict.fromkeys(feed_forwards.values())))
        object.__setattr__(self, "num_expert_layers", sum(has_experts[id(layer.mlp)] for layer in self.layers))
        object.__setattr__(self, "shared_caches", tuple(_shared_caches(self.layers)))
        scaled = self.hosted_parameters + self.hosted_parameters // 32  # a scale of one byte for 32 elements
        hosted = scaled if self.hosts_fp8 else self.hosted_parameters * dtype_bytes(self.dtype)
        object.__setattr__(self, "hosted_bytes", hosted)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Return all kinds of parts."""
        return (*self.mixers, *self.feed_forwards)

    def with_mixers(self, changed: Callable[[Mixer], Mixer]) -> "Architecture":
        """Return the model with other mixers in the place of its own; itself where all stay as they are."""
        others = {mixer: changed(mixer) for mixer in self.mixers}
        if all(mixer == other for mixer, other in others.items()):
            return self
        layers = (replace(layer, mixers=tuple(others[mixer] for mixer in layer.mixers)) for layer in self.layers)
        return replace(self, layers=tuple(layers))

    def with_own_caches(self) -> "Architecture":
        """Return the model as engines run it that share no cache between layers; itself where none is."""
        if not self.shared_caches:
            return self
        return self.with_mixers(
            lambda mixer: (
                replace(mixer, shares_cache_with=None)
                if isinstance(mixer, GroupedQueryAttention) and mixer.shares_cache_with is not None
                else mixer
            )
        )

    @property
    def element_bytes(self) -> int:
        """Return the bytes of one unquantized weight or activation."""
        return dtype_bytes(self.dtype)

    @property
    def has_attention(self) -> bool:
        """Return whether any layer attends to cached tokens."""
        return any(mixer.is_attention for mixer in self.mixers)

    @property
    def compresses_past(self) -> bool:
        """Return whether any layer keeps one entry for several tokens."""
        return any(mixer.work(1, 1).ratio > 1 for mixer in self.mixers)

    @property
    def has_experts(self) -> bool:
        """Return whether any layer deals its tokens over experts."""
        return self.num_expert_layers > 0

    @property
    def is_mixture(self) -> bool:
        """Return whether it has experts, or layers that carry a state instead of keys and values."""
        return self.has_experts or any(mixer.is_recurrent for mixer in self.mixers)


def _shared_caches(layers: tuple[DecoderLayer, ...]) -> Iterator[tuple[int, int]]:
    """Yield each layer that reads another's cache, with that one, by their places."""
    for place, layer in enumerate(layers):
        for mixer in layer.mixers:
            if isinstance(mixer, GroupedQueryAttention | SourcedAttention) and mixer.shares_cache_with is not None:
                yield place, mixer.shares_cache_with


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DraftHead:
    """Layers beside the model's own that draft tokens from its hidden states: MTP modules, an EAGLE head.

    Embeddings and the output head are the model's, shared, unless stated. Compared and hashed by
    identity, like the model.
    """

    body: Architecture  # the draft's layers, in the model's width
    layer_modules: tuple[str, ...]  # what the checkpoint calls each of these layers
    num_modules: int = 1  # that take turns over drafted tokens
    is_loaded_by_step: bool = False  # in SGLang: once for each drafted token
    builds_as_drafted: bool = False  # no more modules than tokens are drafted
    drafts_at_once: bool = False  # all tokens of a step, in one pass through all of its layers
    pair_rank: int = 0  # of a table by which each drafted token bears on the next; 0 without one
    method: str = ""  # as vLLM's command names it, where not as others are
    joined_states: int = 2  # vectors side by side that a projection brings to one width, in each module
    projection_module: str = ""  # as checkpoints name it; empty where it always keeps the model's dtype
    is_projection_split: bool = False  # over tensor-parallel ranks
    projection_scale_bytes: int = 4
    num_norms: int = 3  # of each module, besides its layers'
    widened_inputs: int = 0  # elements that queries, keys and values take in beyond the model's width
    head_vocab_size: int = 0  # rows of an output head of its own in each module; 0 where it is the model's
    states_count: bool = True  # as `num_nextn_predict_layers`, by which SGLang knows of it when it sizes its pool
    is_vocab_mapped: bool = False  # that vocabulary is a part of the model's, mapped by 64-bit numbers
    is_quantized: bool = True  # stored as the model's checkpoint is
    keeps_model_dtype: bool = False  # of its cache, whatever is asked for
    unquantized: tuple[str, ...] = ()  # but for matrices of these names

    def of_layers(self, places: Sequence[int], num_modules: int) -> "DraftHead":
        """Return a draft of some of these layers, each as often as it is named, in so many modules."""
        return replace(
            self,
            body=replace(self.body, layers=tuple(self.body.layers[place] for place in places)),
            layer_modules=tuple(self.layer_modules[place] for place in places),
            num_modules=num_modules,
        )
