"""How layers share the pool: vLLM 0.33's groups of layers with one block table each.

Source: vLLM 0.33 `v1/core/kv_cache_planning.py` (`get_kv_cache_groups` and what it calls).
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from service.engine.arithmetic import ceil_div
from service.engine.errors import UnsupportedModelError
from service.engine.layers import CacheSpec

GROWING_KINDS = frozenset({"full_attention", "mla_attention"})
# Whose kernels read blocks of several pages side by side, and states; a state's page is as long as the latents' beside.
PACKED_KINDS = frozenset({"sliding_window_mla", "circular_buffer"})
STATE_KINDS = frozenset({"mamba", "circular_buffer"})
# Which are cut like states where no layers of several page sizes set the number in a group.
STATES_AND_WINDOWS = STATE_KINDS | {"sliding_window", "sliding_window_mla"}
# Above this ratio of the largest to the smallest layer count, padding would waste too much.
PADDING_RATIO = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """Layers that share one block table; a block holds one page of each."""

    specs: tuple[CacheSpec, ...]  # one per layer
    kinds: tuple[CacheSpec, ...]  # one spec for each rule of how blocks grow
    layers: tuple[int, ...]  # where each spec stands among those of the model

    @property
    def bytes_per_block(self) -> int:
        """Return the bytes of one block of all layers."""
        return sum(number * spec.block_stride_bytes for spec, number in numbered(self.specs))

    def blocks_for(self, num_tokens: int, in_flight_tokens: int) -> int:
        """Return the blocks that a request of this length may hold at once."""
        if len(self.kinds) == 1:  # nearly always, and this is asked often
            return self.kinds[0].blocks_for(num_tokens, in_flight_tokens)
        return max(spec.blocks_for(num_tokens, in_flight_tokens) for spec in self.kinds)


def numbered(specs: Iterable[CacheSpec]) -> list[tuple[CacheSpec, int]]:
    """Return each object once, with its number: layers that are alike share one, and there are many of them."""
    specs = tuple(specs)
    once = dict(zip(map(id, specs), specs, strict=True))  # asked of every stage: a third of the time of a comprehension
    return [(once[identity], number) for identity, number in Counter(map(id, specs)).items()]


def group_of(specs: tuple[CacheSpec, ...], layers: Iterable[int]) -> CacheGroup:
    """Return the group of these layers, which stand at these places of the model."""
    by_rule = {_growth(spec): spec for spec, _ in numbered(specs)}
    return CacheGroup(specs=specs, kinds=tuple(by_rule.values()), layers=tuple(layers))


def on_stage(groups: Iterable[CacheGroup], start: int, end: int) -> tuple[CacheGroup, ...]:
    """Return what one pipeline stage holds of a model's groups: its own layers of each, and block tables of all.

    Source: vLLM 0.33 `v1/core/kv_cache_planning.py` (`_project_kv_cache_groups_to_worker`).
    """
    return tuple(_between(group, start, end) for group in groups)


def _between(group: CacheGroup, start: int, end: int) -> CacheGroup:
    held = [(spec, layer) for spec, layer in zip(group.specs, group.layers, strict=True) if start <= layer < end]
    if not held:
        return replace(group, specs=(), layers=())
    return group_of(tuple(spec for spec, _ in held), (layer for _, layer in held))


def _growth(spec: CacheSpec) -> tuple[object, ...]:
    """Return what decides how blocks grow with a request's length."""
    return spec.kind, spec.block_size, spec.window, spec.pages_per_request


def counted(groups: Sequence[CacheGroup]) -> tuple[tuple[CacheGroup, int], ...]:
    """Return groups whose blocks grow alike once, with their number."""
    numbers = Counter(frozenset(_growth(kind) for kind in group.kinds) for group in groups)
    first = {frozenset(_growth(kind) for kind in group.kinds): group for group in reversed(groups)}
    return tuple((first[growth], number) for growth, number in numbers.items())


def cache_groups(specs: Sequence[CacheSpec], *, fills_blocks: bool = True) -> tuple[CacheGroup, ...]:
    """Return the groups of a model's layers, in the engine's order.

    One group when all layers are alike, or grow alike; otherwise page sizes are made equal and
    every kind is cut into groups of the same number of layers.

    Args:
        specs: what each layer keeps.
        fills_blocks: with as many states as fit; else with one for each layer of latents.
    """
    if not specs:
        return ()
    once = [spec for spec, _ in numbered(specs)]
    if len(set(once)) == 1 or _need_the_same_slots(once):
        return (group_of(tuple(specs), range(len(specs))),)
    if any(spec.kind in PACKED_KINDS for spec in once):
        return _packed_groups(_with_padded_states(specs), fills_blocks=fills_blocks)
    return _groups_of_equal_size(_with_one_page_size(specs))


def _need_the_same_slots(specs: Sequence[CacheSpec]) -> bool:
    """Return whether all layers need the same blocks for the same tokens."""
    first = specs[0]
    if len({spec.block_size for spec in specs}) > 1:
        return False
    if first.kind in GROWING_KINDS:
        return all(spec.kind in GROWING_KINDS for spec in specs)
    if first.kind == "mamba":
        return all(
            (spec.kind, spec.pages_per_request, spec.page_size_bytes)
            == (first.kind, first.pages_per_request, first.page_size_bytes)
            for spec in specs
        )
    return all((spec.kind, spec.window) == (first.kind, first.window) for spec in specs)


def _packed_groups(specs: Sequence[CacheSpec], *, fills_blocks: bool) -> tuple[CacheGroup, ...]:
    """Return groups whose pages of different sizes stand side by side in one block.

    Layers that need the same slots form a bucket. A bucket with as many layers of every page size
    repeats a pattern, and is cut into groups of as many repeats as waste least.
    """
    buckets = _slot_buckets(specs)
    sizes = [Counter(specs[layer].page_size_bytes for layer in bucket) for bucket in buckets]
    balanced = [len(set(counts.values())) == 1 for counts in sizes]
    repeats = [max(counts.values()) for counts in sizes]
    floor = max(
        (n for n, even, counts in zip(repeats, balanced, sizes, strict=True) if even and len(counts) > 1), default=0
    )
    counts, states = [1] * len(buckets), STATES_AND_WINDOWS
    if floor:
        per_group = _least_padding([n for n, even in zip(repeats, balanced, strict=True) if even], floor)
        counts = [ceil_div(count, per_group) if even else 1 for even, count in zip(balanced, repeats, strict=True)]
        states = STATE_KINDS
    widest = max(_widest_bytes(specs, bucket, count, states) for bucket, count in zip(buckets, counts, strict=True))
    groups: list[CacheGroup] = []
    for bucket, count in zip(buckets, counts, strict=True):
        num_groups = count
        if specs[bucket[0]].kind in states:
            fills = fills_blocks or not floor
            states_per_block = max(widest // specs[bucket[0]].page_size_bytes, 1) if fills else floor
            num_groups = max(count, ceil_div(len(bucket), states_per_block))
        by_size: dict[int, list[int]] = {}
        for layer in bucket:
            by_size.setdefault(specs[layer].page_size_bytes, []).append(layer)
        groups += [
            _picked(specs, [layer for layers in by_size.values() for layer in layers[index::num_groups]])
            for index in range(num_groups)
        ]
    return tuple(groups)


def _widest_bytes(specs: Sequence[CacheSpec], bucket: Sequence[int], num_groups: int, states: frozenset[str]) -> int:
    """Return what a block must hold of a bucket in so many groups: of states one at least. [bytes]."""
    if specs[bucket[0]].kind in states:
        return specs[bucket[0]].page_size_bytes
    pages = Counter(specs[layer].page_size_bytes for layer in bucket)
    return sum(ceil_div(number, num_groups) * page for page, number in pages.items())


def _with_padded_states(specs: Sequence[CacheSpec]) -> list[CacheSpec]:
    """Return the layers with recurrent states in pages as long as those of plain latents, whatever these are packed to.

    Source: vLLM 0.33 `platforms/interface.py` (`_align_hybrid_block_size`, `mamba_page_size_padded`).
    """
    page = max((spec.aligned_token_bytes * spec.block_size for spec, _ in numbered(specs)), default=0)
    padded = {
        id(spec): replace(spec, page_size_padded=page) if spec.kind == "mamba" and page > spec.state_bytes else spec
        for spec, _ in numbered(specs)
    }
    return [padded[id(spec)] for spec in specs]


def _slot_buckets(specs: Sequence[CacheSpec]) -> list[list[int]]:
    """Return the places of layers that need the same slots, bucket by bucket."""
    buckets: list[list[int]] = []
    for layer, spec in enumerate(specs):
        for bucket in buckets:
            if specs[bucket[-1]] is spec or _need_the_same_slots([specs[bucket[0]], spec]):
                bucket.append(layer)
                break
        else:
            buckets.append([layer])
    return buckets


def _picked(specs: Sequence[CacheSpec], layers: Sequence[int]) -> CacheGroup:
    return group_of(tuple(specs[layer] for layer in layers), layers)


def _least_padding(counts: Sequence[int], floor: int) -> int:
    """Return the group size, at least `floor`, that pads these counts least; the larger of equals."""
    return min(range(floor, max(counts) + 1), key=lambda size: (sum(-count % size for count in counts), -size))


def _with_one_page_size(specs: Sequence[CacheSpec]) -> list[CacheSpec]:
    """Return the layers with pages of one size: longer blocks where that divides, padding elsewhere.

    Raises:
        UnsupportedModelError: a latent page that neither divides nor may be padded.
    """
    largest = max(spec.page_size_bytes for spec, _ in numbered(specs))
    unified = {id(spec): _with_page_size(spec, largest) for spec, _ in numbered(specs)}
    return [unified[id(spec)] for spec in specs]


def _with_page_size(spec: CacheSpec, largest: int) -> CacheSpec:
    page = spec.page_size_bytes
    if page == largest:
        return spec
    if spec.kind == "mamba":
        return replace(spec, page_size_padded=largest)
    if largest % page == 0:
        return replace(spec, block_size=spec.block_size * (largest // page))
    if spec.kind == "mla_attention":
        raise UnsupportedModelError(
            f"a latent page of {page} bytes cannot share a pool with pages of {largest} bytes",
            field="model_config",
            accepted="layers whose pages divide one another",
        )
    return replace(spec, page_size_padded=largest)


def _groups_of_equal_size(specs: Sequence[CacheSpec]) -> tuple[CacheGroup, ...]:
    """Return groups with as many layers each as the rarest kind has (or the commonest, when they are close)."""
    buckets = _places(specs)
    fewest, most = min(map(len, buckets.values())), max(map(len, buckets.values()))
    group_size = most if most < fewest * PADDING_RATIO else fewest
    groups: list[CacheGroup] = []
    for spec, layers in buckets.items():
        num_groups = ceil_div(len(layers), group_size)
        # Layers are dealt out in turn, so that pipeline stages get even shares.
        dealt = (layers[index::num_groups] for index in range(num_groups))
        groups += [group_of((spec,) * len(part), part) for part in dealt]
    return tuple(groups)


def _places(specs: Sequence[CacheSpec]) -> dict[CacheSpec, list[int]]:
    """Return where each spec stands; those that are one object are compared once."""
    by_object: dict[int, list[int]] = {}
    for layer, spec in enumerate(specs):
        by_object.setdefault(id(spec), []).append(layer)
    places: dict[CacheSpec, list[int]] = {}
    for layers in by_object.values():
        places.setdefault(specs[layers[0]], []).extend(layers)
    return {spec: sorted(layers) for spec, layers in places.items()}
