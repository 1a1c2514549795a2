"""Variants that no published model has, each whole in this one file: what anybody who adds one writes."""

from dataclasses import dataclass

from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.layers import (
    CacheSpec,
    Checkpoint,
    DetailRule,
    Divisor,
    FeedForward,
    KernelNeed,
    LiveElements,
    Mixer,
    RecurrentMixer,
    Role,
    Rotated,
    Routing,
    Sharding,
    Spread,
    Work,
)
from service.engine.layers.cache import CacheSharing


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixMemory(RecurrentMixer):
    """A recurrence with one square fp32 matrix for each head."""

    num_heads: int
    head_dim: int

    def state_bytes(self, sharding: Sharding) -> int:
        return self.num_heads // sharding.tensor_parallel_size * self.head_dim**2 * 4

    @property
    def checkpoint(self) -> Checkpoint | None:
        return None

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        width = self.num_heads * self.head_dim // layout.tensor_parallel_size
        return [
            Matrix(module=prefix + "memory.in_proj", rows=3 * width, columns=hidden_size, parts=3),
            Matrix(module=prefix + "memory.out_proj", rows=hidden_size, columns=width),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        return (Divisor(name="memory heads", size=self.num_heads),)

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        return LiveElements(per_token=4 * self.num_heads * self.head_dim)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneKeyAttention(Mixer):
    """Attention with one key, which is the value as well, for all heads."""

    num_heads: int
    head_dim: int
    page_tokens: int | None = 1

    @property
    def sharing(self) -> CacheSharing | None:
        return CacheSharing(query_heads=self.num_heads, key_value_heads=1, saved_fraction=1 - 0.5 / self.num_heads)

    @property
    def role(self) -> Role:
        return "attention"

    def caches(self, sharding: Sharding) -> tuple[CacheSpec, ...]:
        token_bytes = self.head_dim * sharding.cache_element_bytes
        return (CacheSpec(kind="full_attention", block_size=sharding.block_size, token_bytes=token_bytes),)

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        return (KernelNeed(kind="own", block_size=48),)

    @property
    def page_size(self) -> int | None:
        return self.page_tokens

    @property
    def spread(self) -> Spread:
        return Spread(queries=self.num_heads, key_values=1)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        width = self.num_heads // layout.tensor_parallel_size * self.head_dim
        return [
            Matrix(module=prefix + "one.q_proj", rows=width + self.head_dim, columns=hidden_size),
            Matrix(module=prefix + "one.o_proj", rows=hidden_size, columns=width),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        return (Divisor(name="one-key heads", size=self.num_heads, rule="repeated"),)

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        return LiveElements(per_token=16 * self.num_heads * self.head_dim, expanded_per_token=5, selected_ratio=2)

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        return ("o_proj",)

    @property
    def rotated(self) -> Rotated | None:
        return None

    def detailed(self, _details: DetailRule) -> Mixer:
        return self

    @property
    def draft_attention(self) -> Mixer | None:
        return self

    def work(self, tensor_parallel_size: int, cache_element_bytes: int) -> Work:
        return Work(
            token_bytes=self.head_dim * cache_element_bytes,
            longest=1_000.0,
            decode_flop_per_pair=4 * self.num_heads // tensor_parallel_size * self.head_dim,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TwinExperts(FeedForward):
    """Experts of one matrix each, of which a token passes two."""

    num_experts: int
    columns: int

    @property
    def is_empty(self) -> bool:
        return False

    @property
    def routing(self) -> Routing | None:
        return Routing(num_experts=self.num_experts, num_experts_per_tok=2)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        columns = self.columns // layout.tensor_parallel_size
        return [
            Matrix(
                module=prefix + "twins.weight",
                rows=hidden_size,
                columns=columns,
                count=self.num_experts,
                is_routed=True,
            )
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        return (Divisor(name="twin columns", size=self.columns, fills_blocks=True),)

    @property
    def live_elements(self) -> int:
        return 7 * self.columns

    def workspace_elements(self, hidden_size: int, _layout: Layout) -> int:
        return 11 * hidden_size

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        return ("weight",)

    @property
    def active_columns(self) -> int:
        return 2 * self.columns
