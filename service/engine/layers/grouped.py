"""Softmax attention with its own keys and values: MHA, GQA and MQA.

    bytes per token = key-value heads x (key width + value width) x element bytes
    flop per pair   = 2 x query heads x (key width + value width)

Key-value heads are split while they last, and replicated beyond: one a rank.

Sources:
    W. Kwon et al., Efficient memory management for LLM serving with PagedAttention (arXiv:2309.06180), section 3;
    vLLM 0.33 `model_executor/layers/attention/attention.py` (`get_kv_cache_spec`), `model_executor/models/llama.py`
    and its like; `models/step3_text.py`, `models/minimax_m3/` for what those families add.
"""

from dataclasses import dataclass, replace

from service.engine.formats.matrix import Matrix, cache_scales, vector
from service.engine.inputs import Layout
from service.engine.layers.base import (
    ANY_PAGE,
    FLOP_PER_MULTIPLICATION,
    UNBOUNDED,
    DetailRule,
    Divisor,
    KernelNeed,
    LiveElements,
    Mixer,
    Role,
    Spread,
    Work,
)
from service.engine.layers.cache import CacheSharing, CacheSpec, Sharding, SpecKind, heads_per_rank
from service.engine.layers.heads import Heads
from service.engine.layers.rotary import Rotated
from service.engine.layers.selectors import Reads, Selector
from service.engine.layers.shapes import AttentionShape


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedQueryAttention(Mixer):
    """Softmax attention with its own keys and values: MHA, GQA and MQA.

    `sliding_window` and `attention_chunk_size` bound what a layer keeps; at most one is set.
    """

    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    v_head_dim: int
    sliding_window: int | None = None  # [tokens]
    attention_chunk_size: int | None = None  # [tokens]
    has_query_bias: bool = False
    has_key_value_bias: bool = False
    has_output_bias: bool = False
    norm_elements: int = 0  # query and key norms, not split over ranks
    has_wide_norms: bool = False  # norms over all heads of query and key, split with them
    has_head_gate: bool = False  # one gate per query head
    has_output_gate: bool = False  # query projection is twice as wide
    has_sinks: bool = False  # one learnt logit per query head
    query_rank: int = 0  # queries come out of a projection this wide, which with keys and values no rank splits
    selector: Selector | None = None
    keeps_model_dtype: bool = False  # its cache is of the model's dtype whatever is asked for
    is_shared_block: bool = False  # has no weights but the projection behind a shared block
    shares_cache_with: int | None = None  # index of the layer whose cache this one reads

    @property
    def sharing(self) -> CacheSharing | None:
        """Return what groups of heads save: 1 - key and value heads / query heads."""
        heads, kept = self.num_attention_heads, self.num_key_value_heads
        return CacheSharing(query_heads=heads, key_value_heads=kept, saved_fraction=1 - kept / heads)

    @property
    def role(self) -> Role:
        """Return that cached tokens are attended to."""
        return "attention"

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return keys and values of the rank's heads, and the key of the block selector where the layer has one.

        Llama 2 7B: 0.5 MB a token (developer.nvidia.com/blog/mastering-llm-techniques-inference-optimization).

        >>> attention = GroupedQueryAttention(
        ...     num_attention_heads=32, num_key_value_heads=32, head_dim=128, v_head_dim=128
        ... )
        >>> rank = Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2)
        >>> 32 * attention.caches(rank)[0].token_bytes
        524288
        """
        if self.shares_cache_with is not None:
            return ()
        heads = heads_per_rank(self.num_key_value_heads, sharding.tensor_parallel_size)
        kept = sharding.in_model_dtype() if self.keeps_model_dtype else sharding
        own = CacheSpec(
            kind=self._kind,
            block_size=sharding.block_size,
            token_bytes=heads * (kept.vector_bytes(self.head_dim) + kept.vector_bytes(self.v_head_dim)),
            window=self.sliding_window or self.attention_chunk_size or 0,
            retained_tokens=sharding.retained_tokens if self.sliding_window is not None else 0,
            context_ranks=sharding.context_ranks,
            shape=(heads, self.head_dim, self.v_head_dim),
        )
        return (own,) if self.selector is None else (*self.selector.caches(sharding), own)

    @property
    def _kind(self) -> SpecKind:
        if self.sliding_window is not None:
            return "sliding_window"
        return "full_attention" if self.attention_chunk_size is None else "chunked_local_attention"

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return its heads, or the block selector's own kernel."""
        if self.selector is not None:
            return (KernelNeed(kind="own", block_size=self.selector.block_size),)
        heads = KernelNeed(
            kind="grouped",
            key_dim=self.head_dim,
            value_dim=self.v_head_dim,
            has_sinks=self.has_sinks,
            keeps_model_dtype=self.keeps_model_dtype,
        )
        return (heads,)

    @property
    def shape(self) -> AttentionShape | None:
        """Return its heads, unless it does more than attend."""
        is_more = self.query_rank or self.selector is not None or self.is_shared_block
        if is_more or self.shares_cache_with is not None or self.v_head_dim != self.head_dim:
            return None
        return AttentionShape(
            query_heads=self.num_attention_heads,
            key_value_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            window=self.sliding_window or self.attention_chunk_size or 0,
            has_head_norms=bool(self.norm_elements) or self.has_wide_norms,
            has_output_gate=self.has_output_gate,
        )

    @property
    def page_size(self) -> int | None:
        """Return that any page will do, unless its selector has no rule. [tokens]."""
        return ANY_PAGE if self.selector is None else self.selector.reads.page_size

    @property
    def spread(self) -> Spread:
        """Return the heads: only ranks that would replicate keys and values can share them."""
        return Spread(
            queries=self.num_attention_heads,
            key_values=self.num_key_value_heads,
            is_local=bool(self.sliding_window or self.attention_chunk_size),
            is_on_one_rank=self.selector is not None and self.selector.reads.is_on_one_rank,
        )

    def projecting_all(self) -> "GroupedQueryAttention":
        """Return the layer with keys and values of its own."""
        return replace(self, shares_cache_with=None)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return query, key, value and output; key-value heads are replicated above their number."""
        prefix, tp = prefix + "self_attn.", layout.tensor_parallel_size
        if self.is_shared_block:
            return [Matrix(module=prefix + "linear", rows=hidden_size, columns=hidden_size)]
        if self.query_rank:
            return self._low_rank_queries(hidden_size, tp, prefix)
        heads, kv_heads = self.num_attention_heads // tp, heads_per_rank(self.num_key_value_heads, tp)
        return [
            self._projection(hidden_size, heads, kv_heads, prefix, tp),
            Matrix(
                module=prefix + "o_proj",
                rows=hidden_size,
                columns=heads * self.v_head_dim,
                biases=hidden_size if self.has_output_bias else 0,
            ),
            vector(prefix + "norms", self._norm_elements(heads, kv_heads)),
            Matrix(module=prefix + "g_proj", rows=heads if self.has_head_gate else 0, columns=hidden_size),
            vector(prefix + "sinks", heads if self.has_sinks else 0),
            cache_scales(prefix),
        ]

    def _projection(self, hidden_size: int, heads: int, kv_heads: int, prefix: str, tp: int) -> Matrix:
        """Return queries, keys and values fused; queries alone where another layer's cache is read."""
        shares = self.shares_cache_with is not None
        query = heads * self.head_dim * (2 if self.has_output_gate else 1)
        key_value = kv_heads * (self.head_dim + self.v_head_dim)
        rows = query + (0 if shares else key_value)
        return Matrix(
            module=prefix + "q_proj",
            rows=rows if self.selector is None else rows + self.selector.rows(tp),
            columns=hidden_size,
            parts=1 if shares else 3,
            biases=query * self.has_query_bias + key_value * self.has_key_value_bias,
        )

    def _norm_elements(self, heads: int, kv_heads: int) -> int:
        of_selector = 0 if self.selector is None else 2 * self.selector.head_dim
        wide = (heads + kv_heads) * self.head_dim if self.has_wide_norms else 0
        return self.norm_elements + of_selector + wide

    def _low_rank_queries(self, hidden_size: int, tp: int, prefix: str) -> list[Matrix]:
        """Return a narrow query and one key and value, whole on every rank, before the query's heads (Step 3).

        Source: vLLM 0.33 `model_executor/models/step3_text.py`.
        """
        width = self.num_attention_heads // tp * self.head_dim
        rows = self.query_rank + self.num_key_value_heads * (self.head_dim + self.v_head_dim)
        return [
            Matrix(module=prefix + "qkv_proj", rows=rows, columns=hidden_size),
            Matrix(module=prefix + "wq", rows=width, columns=self.query_rank),
            Matrix(module=prefix + "o_proj", rows=hidden_size, columns=width),
            vector(prefix + "inter_norm", self.query_rank),
            cache_scales(prefix),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return query heads, key-value heads, which ranks beyond them repeat, and what the output takes in."""
        width, module = self.num_attention_heads * self.v_head_dim, "self_attn.o_proj"
        return (
            Divisor(name="attention heads", size=self.num_attention_heads),
            Divisor(name="key-value heads", size=self.num_key_value_heads, rule="repeated"),
            Divisor(name="columns of the attention's output", size=width, fills_blocks=True, module=module),
        )

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return query, key, value and output. [elements]."""
        heads = 2 * self.num_attention_heads + 2 * self.num_key_value_heads
        buffer_bytes = 0 if self.selector is None else self.selector.reads.buffer_bytes
        return LiveElements(per_token=heads * self.head_dim, buffer_bytes_per_token=buffer_bytes)

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return the projections; queries, keys and values are fused under the first one's name."""
        return ("q_proj", "o_proj")

    @property
    def rotated(self) -> Rotated | None:
        """Return whole heads, unless the config says how much of them."""
        return Rotated(width=self.head_dim, has_window=self.sliding_window is not None)

    def detailed(self, details: DetailRule) -> Mixer:
        """Return the same heads with biases and norms."""
        given = details(
            Heads(
                queries=self.num_attention_heads,
                key_values=self.num_key_value_heads,
                width=self.head_dim,
                reads_other_cache=self.shares_cache_with is not None,
                has_input_biases=self.has_query_bias,
                has_output_bias=self.has_output_bias,
            )
        )
        return replace(
            self,
            has_query_bias=given.has_input_biases,
            has_key_value_bias=given.has_input_biases,
            has_output_bias=given.has_output_bias,
            norm_elements=given.norm_elements,
            has_wide_norms=self.has_wide_norms or given.has_wide_norms,
        )

    @property
    def draft_attention(self) -> Mixer | None:
        """Return the same heads without anything around them; none of heads that read single tokens."""
        if self.selector is not None and self.selector.reads.longest < UNBOUNDED:
            return None
        heads, kept, width = self.num_attention_heads, self.num_key_value_heads, self.head_dim
        return GroupedQueryAttention(
            num_attention_heads=heads, num_key_value_heads=kept, head_dim=width, v_head_dim=width
        )

    def work(self, tensor_parallel_size: int, cache_element_bytes: int) -> Work:
        """Return keys and values read, and two products per pair and query head."""
        heads = heads_per_rank(self.num_attention_heads, tensor_parallel_size)
        kv_heads = heads_per_rank(self.num_key_value_heads, tensor_parallel_size)
        width = self.head_dim + self.v_head_dim
        flop = FLOP_PER_MULTIPLICATION * heads * width
        selected = Reads() if self.selector is None else self.selector.reads
        return Work(
            token_bytes=kv_heads * width * cache_element_bytes,
            longest=min(float(self.sliding_window or self.attention_chunk_size or UNBOUNDED), selected.longest),
            decode_flop_per_pair=flop,
            prefill_flop_per_pair=flop,
            scan_bytes=selected.scan_bytes,
            scan_flop_per_pair=selected.scan_flop_per_pair,
        )
