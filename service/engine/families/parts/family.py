"""What one model family is: the classes it speaks for, and the rule for each part of a config."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.attention import AttentionRule
from service.engine.families.parts.biases import BiasRule, as_stated
from service.engine.families.parts.feed_forward import FeedForward, FeedForwardRule
from service.engine.families.parts.mtp import Draft
from service.engine.families.parts.norms import CountRule, HeadNormRule, without_head_norms
from service.engine.families.parts.profiling import Item
from service.engine.families.parts.rotary import RotaryRule, stated_tables
from service.engine.families.parts.sizes import nothing
from service.engine.families.parts.towers import TowerRule
from service.engine.layers import TOWER, AlternatingUpdates, GatedConnections, PerLayerEmbeddings, SharedBlocks


class LanguageModels(Protocol):
    """The families that a wrapper may find its language model among."""

    def has_class(self, name: str) -> bool:
        """Return whether a class is a language model, or has one of its own."""
        ...

    @property
    def model_types(self) -> Mapping[str, str]:
        """Return the class behind each model type."""
        ...


WrapRule = Callable[[Mapping[str, object], LanguageModels], str]  # from a whole config to the class inside
QuantizationRule = Callable[[Mapping[str, object]], Mapping[str, object]]


def never(_reader: ConfigReader) -> bool:
    """Return that no config says so."""
    return False


def whatever_stated(_reader: ConfigReader) -> bool:
    """Return that every config says so."""
    return True


def one_stream(_reader: ConfigReader) -> int:
    """Return 1: layers add to one stream."""
    return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Classes whose configs are read alike; every field but `classes` has the value of the plainest model."""

    classes: tuple[str, ...]  # as `architectures` names them
    model_types: tuple[str, ...] = ()  # by which wrappers name the first of these classes
    unscaled_type: str = ""  # part of the model types whose configs state the scaled context, whatever their rope says

    # The language model: a rule of its own, or the class that is wrapped.
    attention: AttentionRule | None = None
    wraps: WrapRule | None = None
    restates: Callable[[ConfigReader], Mapping[str, object]] | None = None  # usual facts stated elsewhere
    feed_forward: FeedForwardRule = field(default_factory=FeedForward)
    biases: BiasRule = as_stated
    head_norms: HeadNormRule = without_head_norms
    norms_per_layer: int | CountRule = 2
    has_norm_biases: bool = False
    ties_embeddings: bool = False  # where the config does not say
    has_head_bias: bool = False  # where the config does not say
    extra_parameters: CountRule = nothing  # learnt positions and the like
    rotary: RotaryRule = stated_tables
    shared_blocks: Callable[[ConfigReader], SharedBlocks] | None = None

    # The whole model, by its outermost class.
    residual_streams: CountRule = one_stream
    mixes_streams: bool = False
    joins_streams: bool = True
    gated_connections: Callable[[ConfigReader], GatedConnections] | None = None  # of these streams
    hosted_parameters: CountRule = nothing  # of tables in the host's memory
    hosts_fp8: bool = False
    is_hybrid: bool = True
    is_convolved: bool = False
    per_layer_embeddings: Callable[[ConfigReader], PerLayerEmbeddings | None] | None = None
    alternating_updates: Callable[[ConfigReader], AlternatingUpdates] | None = None
    tower: TowerRule | None = None
    tower_size: tuple[int, int] = TOWER  # layers and width that SGLang finds where the config states neither
    states_tower_size: bool = True  # else SGLang does not find what the config states
    largest_item: Item | None = None
    sees_images_both_ways: Callable[[ConfigReader], bool] = never  # where `is_mm_prefix_lm` is not stated
    both_ways_since: str = ""
    runs_in_float16: bool = True
    deals_out_experts: bool = True  # else vLLM finds no number of experts where it looks for one
    drafts_beside_states: bool = False  # vLLM's, before it drafted for every model with recurrent states
    has_stages: bool = True  # vLLM's classes say so by `SupportsPP`
    last_vllm: str = ""  # version; vLLM's registry keeps the names of classes that it no longer has
    prefers_fp8_cache: bool = False  # on GPUs whose sparse kernels read it plain
    draft: Draft | None = None
    requantizes: QuantizationRule | None = None  # what its loader takes a stated quantization for
    has_window_pool: bool = False
