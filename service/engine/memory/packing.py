"""How pages of different sizes stand in one block, and what a request takes of them, by the engine's version.

Sources:
    vLLM 0.33 `v1/core/kv_cache_planning.py` (`_get_kv_cache_bytes_per_block`); 0.24 to 0.26 and 0.20 to 0.23
    `v1/core/kv_cache_utils.py`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from service.engine.arithmetic import ceil_div, round_up
from service.engine.inputs import PagePacking
from service.engine.layers import CacheSpec
from service.engine.memory.groups import GROWING_KINDS, PACKED_KINDS, CacheGroup, cache_groups, numbered


@dataclass(frozen=True, slots=True, kw_only=True)
class Packing:
    """How a version of the engine puts pages into blocks."""

    rule: PagePacking = "packed"
    fills_blocks: bool = True

    def groups(self, specs: Sequence[CacheSpec]) -> tuple[CacheGroup, ...]:
        """Return the groups of a model's layers."""
        return cache_groups(specs, fills_blocks=self.fills_blocks)

    def block_bytes(self, groups: tuple[CacheGroup, ...]) -> int:
        """Return the bytes of a block that any group may use. [bytes]."""
        match self.rule:
            case "packed":
                return packed_bytes(groups, is_aligned=self.fills_blocks)
            case "by_size":
                return by_size_bytes(groups)
            case "columns":
                return columned_bytes(groups)


def packed_bytes(groups: tuple[CacheGroup, ...], *, is_aligned: bool = True) -> int:
    """Return the bytes of one block that any group may use: pages of one group stand side by side. [bytes].

    Beside rings, blocks are whole multiples of what any of the kernels needs.

    Source: vLLM 0.33 `v1/core/kv_cache_planning.py` (`_get_kv_cache_bytes_per_block`).
    """
    widest = max((group.bytes_per_block for group in groups), default=0)
    specs = [spec for group in groups for spec in group.kinds]
    if not is_aligned or all(spec.kind != "circular_buffer" for spec in specs):
        return widest
    once = [spec for group in groups for spec, _ in numbered(group.specs)]
    return round_up(widest, lcm(*(lcm(spec.stride_alignment, spec.block_alignment) for spec in once)))


def blocks_by_growing(groups: tuple[CacheGroup, ...], num_tokens: int, in_flight_tokens: int) -> int:
    """Return the blocks of a request as versions before 0.27 count requests at once, where pages differ in size.

        blocks = ceil(sum over groups of (blocks x bytes of a group's block) / bytes of the growing group's block)

    Source: vLLM 0.26 `v1/core/kv_cache_utils.py` (`get_max_concurrency_for_kv_cache_config`).
    """
    blocks = [group.blocks_for(num_tokens, in_flight_tokens) for group in groups]
    if all(spec.kind not in PACKED_KINDS for group in groups for spec in group.kinds):
        return sum(blocks)
    sizes, growing = _growing_sizes(groups), _growing(groups)
    of_block = [sum(number * _padded(spec, sizes) for spec, number in numbered(group.specs)) for group in groups]
    taken = sum(number * size for number, size in zip(blocks, of_block, strict=True))
    return sum(blocks) if growing is None else ceil_div(taken, growing.bytes_per_block)


def _growing(groups: tuple[CacheGroup, ...]) -> CacheGroup | None:
    """Return the group that grows with a request, which these versions plan first; None where none does."""
    return next((group for group in groups if any(spec.kind in GROWING_KINDS for spec in group.specs)), None)


def _growing_sizes(groups: tuple[CacheGroup, ...]) -> list[int]:
    """Return the page sizes of the group that grows with a request, ascending; none where no group does. [bytes]."""
    growing = _growing(groups)
    return [] if growing is None else sorted({spec.page_size_bytes for spec, _ in numbered(growing.specs)})


def _padded(spec: CacheSpec, sizes: Sequence[int]) -> int:
    """Return a page as long as the next longer one that grows. [bytes]."""
    return next((size for size in sizes if size >= spec.page_size_bytes), spec.page_size_bytes)


def columned_bytes(groups: tuple[CacheGroup, ...]) -> int:
    """Return the same before 0.24, where pages of different sizes had columns of their own. [bytes].

        block = most layers of one page size in any group x sum of the growing group's page sizes

    Source: vLLM 0.22 `v1/core/kv_cache_utils.py` (`_get_kv_cache_config_deepseek_v4`).
    """
    sizes = _growing_sizes(groups)
    if len(groups) == 1 or len(sizes) < 2:
        return packed_bytes(groups)
    layers = max(max(Counter(spec.page_size_bytes for spec in group.specs).values()) for group in groups)
    return layers * sum(sizes)


def by_size_bytes(groups: tuple[CacheGroup, ...]) -> int:
    """Return the same from 0.24 to 0.26: pages of one size stand side by side, whatever group they are of. [bytes].

        block = sum over page sizes of (page size x most layers with it in any group)

    Source: vLLM 0.26 `v1/core/kv_cache_utils.py` (`_bucket_layers_by_page_size`).
    """
    if len(groups) == 1:
        return packed_bytes(groups)
    sizes, most = _growing_sizes(groups), Counter[int]()
    for group in groups:
        most |= Counter(_padded(spec, sizes) for spec in group.specs)
    return sum(size * layers for size, layers in most.items())
