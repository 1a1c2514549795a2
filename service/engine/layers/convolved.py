"""Softmax attention without rotary positions, whose keys, values and outputs pass short convolutions (Inkling).

    queries       = heads x (width + r)                 r numbers beside a query, from which a score follows by distance
    table         = r x distances
    convolutions  = k x (2 x key-value heads x width + 2 x hidden)
    window        = key-value heads x 2^ceil(log2(2 x width + 2 x hidden / key-value heads)) x b        of each token

with k their kernel, of whose inputs a window of k tokens is kept beside keys and values, in blocks as long, and b the
bytes of an element of the model. Ranks split the convolutions by heads and channels: there are no more ranks than
key-value heads.

Sources:
    vLLM 0.33 `models/inkling/nvidia/`: attention.py, short_conv.py, sconv_swa_attn.py (`InklingConvState`); Thinking
    Machines, Inkling (huggingface.co/thinkingmachines/Inkling).
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.formats.matrix import Matrix, cache_scales, vector
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, KernelNeed
from service.engine.layers.cache import CacheSpec, Sharding, heads_per_rank
from service.engine.layers.grouped import GroupedQueryAttention
from service.engine.layers.rotary import Rotated

STREAMS: Final = 2  # of keys and values, and as many of outputs


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolvedAttention(GroupedQueryAttention):
    """Softmax heads with scores by distance, and short convolutions over keys, values and both outputs of the layer."""

    hidden_size: int
    conv_kernel_size: int  # [tokens]
    relative_rank: int  # numbers of each query, from which scores by distance follow
    relative_extent: int  # distances that have a score [tokens]

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return keys and values, and a window of what the convolutions take in.

        A layer of Inkling-Small on one of four GPUs: two heads of 1,280 elements, rounded up to 2,048
        (huggingface.co/thinkingmachines/Inkling-Small, config.json; vLLM 0.33 `sconv_swa_attn.py`).

        >>> attention = ConvolvedAttention(
        ...     num_attention_heads=32, num_key_value_heads=8, head_dim=128, v_head_dim=128, hidden_size=4_096,
        ...     conv_kernel_size=4, relative_rank=16, relative_extent=1_024,
        ... )
        >>> rank = Sharding(tensor_parallel_size=4, cache_element_bytes=2, model_element_bytes=2)
        >>> [(spec.kind, spec.block_size, spec.page_size_bytes) for spec in attention.caches(rank)]
        [('full_attention', 16, 16384), ('sliding_window', 4, 32768)]
        """
        heads = heads_per_rank(self.num_key_value_heads, sharding.tensor_parallel_size)
        taken = STREAMS * self.head_dim + STREAMS * (self.hidden_size // self.num_key_value_heads)
        width = 1 << (taken - 1).bit_length()
        window = CacheSpec(
            kind="sliding_window",
            block_size=self.conv_kernel_size,
            token_bytes=heads * width * sharding.model_element_bytes,
            window=self.conv_kernel_size,
            retained_tokens=sharding.retained_tokens,
            shape=(heads, width, 0),
        )
        return (*super(ConvolvedAttention, self).caches(sharding), window)

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return a kernel of its own, which adds scores by distance."""
        return (KernelNeed(kind="relative", key_dim=self.head_dim, value_dim=self.head_dim, generations=(9, 10)),)

    @property
    def shape(self) -> None:
        """Return that nobody measured such a kernel."""
        return

    @property
    def page_size(self) -> int | None:
        """Return that there is no rule of a pool of pages."""
        return None

    @property
    def rotated(self) -> Rotated | None:
        """Return that nothing is turned."""
        return None

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return queries with what their scores follow from, keys and values, the output, tables and convolutions."""
        prefix, tp = prefix + "self_attn.", layout.tensor_parallel_size
        heads, kv_heads = self.num_attention_heads // tp, heads_per_rank(self.num_key_value_heads, tp)
        query, key_value = heads * (self.head_dim + self.relative_rank), kv_heads * STREAMS * self.head_dim
        convolved = key_value + STREAMS * (self.hidden_size // tp)
        return [
            Matrix(
                module=prefix + "q_proj",
                rows=query + key_value,
                columns=hidden_size,
                parts=4,
                biases=query * self.has_query_bias + key_value * self.has_key_value_bias,
            ),
            Matrix(
                module=prefix + "o_proj",
                rows=hidden_size,
                columns=heads * self.head_dim,
                biases=hidden_size if self.has_output_bias else 0,
            ),
            vector(prefix + "norms", self.norm_elements),
            vector(prefix + "rel_logits_proj", self.relative_rank * self.relative_extent),
            Matrix(module=prefix + "sconv", rows=convolved, columns=self.conv_kernel_size, is_linear=False),
            cache_scales(prefix),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the heads, of which no rank repeats any, and the channels of what is convolved."""
        heads, _, columns = super(ConvolvedAttention, self).divisors
        kept = Divisor(name="key-value heads, which are convolved", size=self.num_key_value_heads)
        return heads, kept, columns, Divisor(name="convolved channels", size=self.hidden_size)

    def windowed(self, window: int) -> "ConvolvedAttention":
        """Return the layer with a window, beyond which no distance has a score.

        Args:
            window: tokens that it attends to. [tokens]
        """
        return replace(self, sliding_window=window, relative_extent=window)
