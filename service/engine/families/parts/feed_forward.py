"""The feed-forward part of every layer: dense, mixture of experts, or none."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, unknown_kind
from service.engine.families.parts.dense import Dense
from service.engine.families.parts.experts import COUNT_NAMES, TOP_K_NAMES, Experts
from service.engine.families.parts.sparsity import sparse_layers
from service.engine.layers import DenseMlp, Mlp, NoMlp

FeedForwardRule = Callable[[ConfigReader, int], tuple[Mlp, ...]]
DenseLayersRule = Callable[[ConfigReader, DenseMlp, int], tuple[Mlp, ...]]
OF_EXPERTS: Final = "moe"  # in a class's name


def no_feed_forward(_reader: ConfigReader, num_layers: int) -> tuple[Mlp, ...]:
    """Return layers that only mix tokens."""
    return (NoMlp(),) * num_layers


def all_alike(_reader: ConfigReader, dense: DenseMlp, num_layers: int) -> tuple[Mlp, ...]:
    """Return the same network in every layer."""
    return (dense,) * num_layers


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedForward:
    """The rule most families share; what one does otherwise is stated in its parts."""

    dense: Dense = field(default_factory=Dense)
    experts: Experts = field(default_factory=Experts)
    is_gated: bool = True
    dense_layers: DenseLayersRule = all_alike

    def __call__(self, reader: ConfigReader, num_layers: int) -> tuple[Mlp, ...]:
        """Return each layer's network, or experts where the config has more than one and this layer does."""
        dense = self.dense.read(reader, is_gated=self.is_gated)
        num_experts = reader.integer(*COUNT_NAMES, default=None if _lacks_count(reader) else 0)
        if num_experts <= 1:
            sizes = reader.raw("intermediate_size")
            return (
                _of_sizes(reader, dense, num_layers) if is_list(sizes) else self.dense_layers(reader, dense, num_layers)
            )
        experts = self.experts.read(reader, num_experts, is_gated=self.is_gated)
        sparse = sparse_layers(reader, num_layers, self.experts.sparsity)
        return tuple(experts if has_experts else dense for has_experts in sparse)


def _lacks_count(reader: ConfigReader) -> bool:
    """Return whether a config has experts by its class, or by how many a token takes, and does not say how many.

    Loaders then take the default of the published model (128 of `Qwen3MoeConfig`); without experts it would be read as
    the small dense model that it is not. A count of null or 0 says that there are none.
    """
    if any(reader.states(name) for name in COUNT_NAMES):
        return False
    classes = reader.raw("architectures")
    is_named = any(OF_EXPERTS in str(name).lower() for name in classes) if is_list(classes) else False
    return is_named or reader.raw(*TOP_K_NAMES) is not None


def _of_sizes(reader: ConfigReader, dense: DenseMlp, num_layers: int) -> tuple[Mlp, ...]:
    """Return dense layers of the sizes that a list states."""
    stated = reader.integers("intermediate_size") or ()
    if len(stated) < num_layers or min(stated) <= 0:
        raise unknown_kind("intermediate_size", stated, "one number above 0 per layer")
    return tuple(replace(dense, intermediate_size=size) for size in stated[:num_layers])
