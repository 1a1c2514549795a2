"""Softmax heads with keys and values of their own: what families' rules ask about them, and what they give them.

    norm elements = (query norm + key norm) x head width      as wide as a head, held whole by every rank

Source:
    vLLM 0.33 `model_executor/models/qwen3.py`, `olmo2.py` and their like, whose attention differs in these alone.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Such heads, before their family adds to them."""

    queries: int
    key_values: int
    width: int  # of one head's query or key [elements]
    reads_other_cache: bool  # and has no keys of its own
    has_input_biases: bool  # in queries, keys and values
    has_output_bias: bool

    @property
    def norm_elements(self) -> int:
        """Return norms as wide as a head, for queries and for keys. [elements].

        Qwen3-8B: 128 elements each, `q_norm` and `k_norm` (huggingface.co/Qwen/Qwen3-8B, safetensors).

        >>> Heads(
        ...     queries=32, key_values=8, width=128, reads_other_cache=False, has_input_biases=False,
        ...     has_output_bias=False,
        ... ).norm_elements
        256
        """
        return (1 if self.reads_other_cache else 2) * self.width


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadDetails:
    """What a family gives them."""

    has_input_biases: bool
    has_output_bias: bool
    norm_elements: int  # that every rank holds whole
    has_wide_norms: bool = False  # over all heads of queries and keys, split with them
