"""Sizes of a layer's parts by which kernels are measured, whatever a model calls them.

    gated columns = 2 / 3 of those of a network without a gate, whose two matrices hold as much

Source:
    N. Shazeer, GLU variants improve transformer (arXiv:2002.05202), which takes the same third off.
"""

from dataclasses import dataclass
from typing import Final

GATED_SHARE: Final = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionShape:
    """Softmax heads with keys and values of their own, as wide as the queries."""

    query_heads: int
    key_value_heads: int
    head_dim: int
    window: int = 0  # tokens that are attended to at most; 0: all
    has_head_norms: bool = False  # on queries and keys
    has_output_gate: bool = False  # as wide as the queries


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaShape:
    """A matrix state for each value head, under the gated delta rule, behind a short convolution."""

    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel_size: int
    state_dtype: str  # "auto" follows the model


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkShape:
    """Gated feed-forward networks: one that every token passes, and experts that some do."""

    columns: int = 0  # that every token passes; 0 where all is dealt out
    num_experts: int = 0
    num_experts_per_tok: int = 0
    expert_columns: int = 0


def gated_columns(columns: int, *, is_gated: bool) -> int:
    """Return the columns of a gated network with as many elements.

    GPT-NeoX-20B, 24,576 columns (arXiv:2204.06745, appendix): as much as gated ones of 16,384.

    >>> gated_columns(24_576, is_gated=False)
    16384
    """
    return columns if is_gated else round(columns * GATED_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """How many experts a layer has, and through how many of them a token passes."""

    num_experts: int
    num_experts_per_tok: int
