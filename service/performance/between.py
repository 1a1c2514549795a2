"""Step times of copies of the attention that were not measured: between those of fewer and of more that were.

    time(n) = share x time(fewer) + (1 - share) x time(more)
    share   = (held(n) - held(more)) / (held(fewer) - held(more))
    held(n) = experts on the fullest of TP x n ranks

Kernels of experts were measured over powers of two of ranks. What n ranks read and compute of experts beside their own
requests goes with the experts on a rank, so that three, five, six or seven copies lie between two and four, or four and
eight, and need no estimate of another kind.
"""

from dataclasses import replace
from math import ceil
from typing import Final

from service.engine.inputs import Layout
from service.engine.time.steps import Deployed
from service.performance.kernel_tables import NotMeasuredError
from service.performance.tables import StepTables

NOTE: Final = "kernels of {layout} ranks were not measured; times lie between those of {fewer} and {more}, which were"


def neighbours(layout: Layout) -> tuple[Layout, Layout] | None:
    """Return the layouts with the next fewer and more copies that are powers of two; None for one that is itself.

    >>> fewer, more = neighbours(Layout(data_parallel_size=7, expert_parallel=True))
    >>> fewer.data_parallel_size, more.data_parallel_size
    (4, 8)
    """
    copies = layout.data_parallel_size
    if copies.bit_count() == 1:
        return None
    fewer = 1 << copies.bit_length() - 1
    return replace(layout, data_parallel_size=fewer), replace(layout, data_parallel_size=2 * fewer)


def between(key: Deployed, fewer: tuple[Layout, StepTables], more: tuple[Layout, StepTables]) -> StepTables:
    """Return the times of a layout between those of its neighbours.

    Raises:
        NotMeasuredError: kernels of unlike formats stand for the two.
    """
    if fewer[1].place != more[1].place:
        raise NotMeasuredError("kernels of unlike formats were measured for fewer and for more ranks")
    share = _share(_held(key, key.layout), _held(key, fewer[0]), _held(key, more[0]))

    def mixed(few: tuple[float, ...], many: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(share * one + (1 - share) * other for one, other in zip(few, many, strict=True))

    return replace(
        fewer[1],
        decode=tuple(mixed(*rows) for rows in zip(fewer[1].decode, more[1].decode, strict=True)),
        tokens=mixed(fewer[1].tokens, more[1].tokens),
        attention=mixed(fewer[1].attention, more[1].attention),
    )


def _share(held: float, by_fewer: float, by_more: float) -> float:
    """Return how near to the fewer a layout lies; of experts that all hold alike, the slower is taken.

    >>> round(_share(ceil(256 / 7), 64, 32), 3)
    0.156
    """
    return 1.0 if by_fewer == by_more else (held - by_more) / (by_fewer - by_more)


def _held(key: Deployed, layout: Layout) -> float:
    """Return the experts on the fullest rank, or its part of them where each is cut."""
    ranks = layout.tensor_parallel_size * layout.data_parallel_size
    routings = [part.routing for part in key.model.architecture.feed_forwards]
    experts = max((routing.num_experts for routing in routings if routing is not None), default=0)
    return ceil(experts / ranks) if layout.expert_parallel else 1 / ranks


def note_of(layout: Layout, fewer: Layout, more: Layout) -> str:
    """Return what is said of such times."""
    ranks = [each.tensor_parallel_size * each.data_parallel_size for each in (layout, fewer, more)]
    return NOTE.format(layout=ranks[0], fewer=ranks[1], more=ranks[2])
