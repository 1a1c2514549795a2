"""The layouts that are searched: TP x PP x DP (attention) x EP x DCP, as far as the engine would start them.

    tensor      any legal size within one fast domain (a server, or the NVLink domain of a rack), and powers of two
                over whole servers
    pipeline    up to 8 stages: inside a server, over whole servers, or whole ones in each that leave GPUs to others
    data        copies of the attention of a mixture of experts, whose experts lie over all of them
    experts     cut over the ranks, or dealt out whole
    context     the tokens of one cache over as many ranks as the engine allows
    both        stages of copies: powers of two over whole servers, a server each, or some that each server holds whole

Copies of a dense model are replicas, which are counted outside. What is stated is kept, and is not searched.
"""

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.derived import derived
from service.engine.engines.device import Device
from service.engine.engines.registry import engine_named
from service.engine.fleet.layouts import check_layout, is_legal
from service.engine.formats.quantization import Quantization
from service.engine.inputs import All2AllBackend, EngineName, Gpu, Layout, StatedLayout
from service.engine.layers import Architecture

MAX_RANKS: Final = 64  # of one replica's attention
MAX_STAGES: Final = 8
SMALL_SIZES: Final = (1, 2, 3, 4, 5, 6, 7, 8)
SIZES_OVER_SERVERS: Final = (2, 4, 8, 16, 32)  # over which every layer is split
NODES: Final = (2, 3, 4, 6, 8, 12, 16)  # that one replica may fill, the most of few GPUs each
SMALL_SERVERS: Final = 16  # GPUs that copies of the attention stand on together, in servers of few


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a layout is to start on."""

    gpu: Gpu
    engine: EngineName
    device: Device  # the GPU's generation, and the engine's version
    all2all_backend: All2AllBackend | None = None  # as stated


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """Legal layouts, smallest first: those that operators start, and those that are taken only where they save GPUs."""

    usual: tuple[Layout, ...]
    unusual: tuple[Layout, ...]  # caches over ranks; experts cut over copies; copies in stages, or beside others' GPUs
    layouts: tuple[Layout, ...] = field(init=False, repr=False)  # all of them
    sizes: tuple[int, ...] = field(init=False, repr=False)  # GPUs of a replica, each once
    ranks_of_context: frozenset[int] = field(init=False, repr=False)  # over which unusual ones spread a cache

    def __post_init__(self) -> None:
        """Collect what every search asks."""
        object.__setattr__(self, "layouts", (*self.usual, *self.unusual))
        object.__setattr__(self, "sizes", tuple(dict.fromkeys(layout.gpus_per_replica for layout in self.layouts)))
        spread = frozenset(layout.decode_context_parallel_size for layout in self.unusual) - {1}
        object.__setattr__(self, "ranks_of_context", spread)

    def of_sizes(self, sizes: Container[int]) -> Iterator[tuple[int, Layout]]:
        """Yield the layouts of so many GPUs, each with its place among all."""
        for index, layout in enumerate(self.layouts):
            if layout.gpus_per_replica in sizes:
                yield index, layout

    @property
    def splitting(self) -> tuple[Layout, ...]:
        """Return the usual ones that split every layer alone, if there are any, else all usual ones."""
        return tuple(each for each in self.usual if each.gpus_per_replica == each.tensor_parallel_size) or self.usual


@derived(512)
def space_of(architecture: Architecture, quantization: Quantization, target: Target, stated: StatedLayout) -> Space:
    """Return the legal layouts to consider.

    Raises:
        UnsupportedLayoutError: the caller fixed a layout that the engine would refuse.
    """
    legal = [
        layout
        for layout in _layouts(architecture, target, stated)
        if is_legal(architecture, quantization, layout, target.device)
    ]
    if not legal:
        _explain(architecture, quantization, target, stated)
    usual = [layout for layout in legal if not _is_unusual(layout, target.gpu, stated)]
    unusual = [layout for layout in legal if _is_unusual(layout, target.gpu, stated)]
    if not usual:  # where nothing else is legal, as with stated copies of a dense model, operators start that
        usual, unusual = unusual, []
    spreads = stated.decode_context_parallel_size is None and engine_named(target.engine).spreads_caches
    spread = _spread(architecture, quantization, legal, target) if spreads else ()
    return Space(usual=_sorted(usual), unusual=_sorted([*unusual, *spread]))


def simplicity(layout: Layout) -> tuple[int, bool, int, int, bool, int]:
    """Return what is compared where nothing else tells two layouts apart: the plainer one is less.

    Caches on their own ranks, powers of two, no stages, no copies of the attention, experts cut.

    >>> simplicity(Layout(tensor_parallel_size=8)) < simplicity(Layout(data_parallel_size=8, expert_parallel=True))
    True
    >>> simplicity(Layout(pipeline_parallel_size=4)) < simplicity(Layout(pipeline_parallel_size=3))
    True
    """
    return (
        layout.decode_context_parallel_size,
        is_odd(layout),
        layout.pipeline_parallel_size,
        layout.data_parallel_size,
        layout.expert_parallel,
        layout.gpus_per_replica,
    )


def is_odd(layout: Layout) -> bool:
    """Return whether any of its sizes is no power of two, or copies of the attention spread their caches as well.

    Servers are built, and kernels measured, for powers of two.
    """
    sizes = (layout.tensor_parallel_size, layout.pipeline_parallel_size, layout.data_parallel_size)
    spreads_copies = layout.decode_context_parallel_size > 1 and layout.data_parallel_size > 1
    return spreads_copies or any(size.bit_count() > 1 for size in sizes)


def splits_over_servers(layout: Layout, gpu: Gpu) -> bool:
    """Return whether every layer is split over servers of several GPUs, so that a network is part of every step."""
    return layout.tensor_parallel_size > gpu.joined_gpus > 1


def _sorted(layouts: list[Layout]) -> tuple[Layout, ...]:
    return tuple(sorted(layouts, key=lambda layout: (layout.gpus_per_replica, *simplicity(layout))))


def _is_unusual(layout: Layout, gpu: Gpu, stated: StatedLayout) -> bool:
    """Return whether nobody asked for it, and experts are cut over copies of the attention, or those are stages too.

    Or copies or stages leave GPUs of their last server to others, or layers are split over servers of several GPUs.
    """
    tensor = layout.tensor_parallel_size
    if stated.tensor_parallel_size is None and splits_over_servers(layout, gpu):
        return True
    if stated.pipeline_parallel_size is None and not _stands(gpu, tensor, layout.pipeline_parallel_size):
        return True
    has_copies = layout.data_parallel_size > 1
    is_cut = not layout.expert_parallel and stated.expert_parallel is None
    is_open = stated.pipeline_parallel_size is None and stated.data_parallel_size is None
    stands = _stands(gpu, tensor, layout.data_parallel_size)
    return has_copies and (is_cut or (is_open and (layout.pipeline_parallel_size > 1 or not stands)))


def _explain(architecture: Architecture, quantization: Quantization, target: Target, stated: StatedLayout) -> None:
    """Raise the refusal of exactly the layout that was asked for."""
    ranks = stated.tensor_parallel_size or 1
    if stated.tensor_parallel_size is None and stated.decode_context_parallel_size is not None:
        # The largest size over which caches could have been spread.
        others = space_of(architecture, quantization, target, replace(stated, decode_context_parallel_size=None))
        ranks = max(layout.tensor_parallel_size for layout in others.layouts)
    check_layout(
        architecture,
        quantization,
        Layout(
            tensor_parallel_size=ranks,
            pipeline_parallel_size=stated.pipeline_parallel_size or 1,
            data_parallel_size=stated.data_parallel_size or 1,
            expert_parallel=bool(stated.expert_parallel),
            decode_context_parallel_size=stated.decode_context_parallel_size or 1,
            all2all_backend=target.all2all_backend,
        ),
        target.device,
    )


def _layouts(architecture: Architecture, target: Target, stated: StatedLayout) -> Iterator[Layout]:
    """Yield layouts, the engine's divisions aside."""
    for tensor in _tensor_sizes(target.gpu, stated):
        for stages, copies in _shares(architecture, target, tensor, stated):
            for experts in _expert_choices(architecture, tensor * copies, stated):
                yield Layout(
                    tensor_parallel_size=tensor,
                    pipeline_parallel_size=stages,
                    data_parallel_size=copies,
                    expert_parallel=experts,
                    decode_context_parallel_size=stated.decode_context_parallel_size or 1,
                    all2all_backend=target.all2all_backend,
                )


def _tensor_sizes(gpu: Gpu, stated: StatedLayout) -> tuple[int, ...]:
    """Return sizes within one fast domain: all small ones, and powers of two; and powers of two over whole servers.

    Source: SGLang `docs/basic_usage/deepseek_v3.md`: one `--tp` over two servers of H100, or over four of A100.
    """
    if stated.tensor_parallel_size is not None:
        return (stated.tensor_parallel_size,)
    domain = _fast_domain(gpu)
    within = (size for size in (*SMALL_SIZES, 16, 32, MAX_RANKS) if size <= domain)
    return *within, *(size for size in SIZES_OVER_SERVERS if size > domain and size % gpu.gpus_per_node == 0)


def _fast_domain(gpu: Gpu) -> int:
    """Return the GPUs that a fabric or a server joins, as far as one replica's attention is spread."""
    return min(gpu.joined_gpus, MAX_RANKS)


def _shares(architecture: Architecture, target: Target, tensor: int, stated: StatedLayout) -> Iterator[tuple[int, int]]:
    """Yield pipeline stages and copies of the attention, alone or both at once."""
    stages_stated, copies_stated = stated.pipeline_parallel_size, stated.data_parallel_size
    stages = _stages(target, tensor) if stages_stated is None else (stages_stated,)
    copies = _copies(architecture, target, tensor) if copies_stated is None else (copies_stated,)
    for of_stages in stages:
        for of_copies in copies:
            is_stated = stages_stated is not None and copies_stated is not None
            if 1 in (of_stages, of_copies) or is_stated or _stand_both(target, tensor, of_stages, of_copies):
                yield of_stages, of_copies


def _stages(target: Target, tensor: int) -> tuple[int, ...]:
    """Return stages that stay inside a server, fill whole servers, or stand whole in some that leave GPUs to others."""
    most = max(max(MAX_RANKS, MAX_STAGES * _fast_domain(target.gpu)) // tensor, 1)
    sizes = (size for size in SMALL_SIZES[:MAX_STAGES] if size <= most)
    return tuple(size for size in sizes if _stands(target.gpu, tensor, size) or _stand_whole(target, tensor, size))


def _stand_whole(target: Target, tensor: int, stages: int) -> bool:
    """Return whether no stage is cut where an engine deals out so many ranks over as few servers as hold them."""
    node = target.gpu.gpus_per_node
    servers = ceil_div(tensor * stages, node)
    in_turn = engine_named(target.engine).command_line.fills_servers_in_turn and node % tensor == 0
    return node // tensor * servers >= stages and (in_turn or stages % servers == 0)


def _copies(architecture: Architecture, target: Target, tensor: int) -> tuple[int, ...]:
    """Return copies of the attention inside a server, or over whole servers; 1 where there is nothing to share."""
    command_line = engine_named(target.engine).command_line
    if not architecture.has_experts or "data_parallel_size" in command_line.without_flag:
        return (1,)  # replicas do the same, or no flag names such copies
    most = MAX_RANKS // tensor
    return tuple(size for size in range(1, most + 1) if _stands(target.gpu, tensor, size) or _fit(target, tensor, size))


def _fit(target: Target, ranks: int, copies: int) -> bool:
    """Return whether two servers, or more of few GPUs, hold whole copies of so many ranks, the last fewer of them.

    Not where all copies are ranks of one group, which an engine deals out over its servers by equal shares.
    """
    if target.device.plan.joins_copies:
        return False
    node = target.gpu.gpus_per_node
    return copies <= max(2, SMALL_SERVERS // node) * (node // ranks)


def _stands(gpu: Gpu, tensor: int, others: int) -> bool:
    """Return whether so many groups of GPUs stand in one fast domain, or fill whole servers."""
    node, gpus = gpu.gpus_per_node, tensor * others
    if others == 1 or gpus <= node:
        return True
    in_domain = gpus <= min(gpu.scale_up_domain_gpus, MAX_RANKS) and gpus.bit_count() == 1
    return gpus % node == 0 and (in_domain or gpus // node in NODES)


def _stand_both(target: Target, tensor: int, stages: int, copies: int) -> bool:
    """Return whether stages of copies stand in a server or fill some: powers of two of both, or whole copies.

    Whole copies fill a server each, or leave GPUs to others.
    """
    gpu, gpus, is_even = target.gpu, tensor * stages * copies, (stages * copies).bit_count() == 1
    fills = tensor * stages == gpu.gpus_per_node and copies in NODES  # a server each
    stands = (is_even or fills) and gpus <= MAX_RANKS and _stands(gpu, tensor * copies, stages)
    return stands or _fit(target, tensor * stages, copies)


def _expert_choices(architecture: Architecture, ranks: int, stated: StatedLayout) -> tuple[bool, ...]:
    """Return whether experts are dealt out whole: as stated, else either; of one rank no engine deals any out."""
    if architecture.has_experts and architecture.deals_out_experts and ranks == 1:
        return (False,)  # vLLM 0.33 `fused_moe/config.py`: `use_ep = dp_size_ * pcp_size_ * tp_size_ > 1 and ...`
    either = (False, True) if architecture.has_experts and ranks > 1 else (False,)
    return either if stated.expert_parallel is None else (stated.expert_parallel,)


def _spread(
    architecture: Architecture, quantization: Quantization, legal: Iterable[Layout], target: Target
) -> Iterator[Layout]:
    """Yield layouts with a cache's tokens over as many ranks as the engine allows: their tensor size alone decides."""
    most: dict[int, int] = {}
    for layout in legal:
        tensor = layout.tensor_parallel_size
        if tensor not in most:
            most[tensor] = _most_ranks(architecture, quantization, layout, target)
        if most[tensor] > 1:
            yield replace(layout, decode_context_parallel_size=most[tensor])


def _most_ranks(architecture: Architecture, quantization: Quantization, layout: Layout, target: Target) -> int:
    """Return over how many ranks the engine spreads a cache's tokens at most."""
    tensor = layout.tensor_parallel_size
    divisors = (ranks for ranks in range(tensor, 1, -1) if tensor % ranks == 0)
    spread = ((ranks, replace(layout, decode_context_parallel_size=ranks)) for ranks in divisors)
    return next((ranks for ranks, each in spread if is_legal(architecture, quantization, each, target.device)), 1)
