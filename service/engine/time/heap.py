"""A heap of (last step, order of joining, request), compiled: who finishes next."""

from service.engine.time.compiled import compiled
from service.engine.time.records import Record, Records


@compiled
def _is_before(heap: Records, one: int, other: int) -> bool:
    if heap[one].last_step != heap[other].last_step:
        return bool(heap[one].last_step < heap[other].last_step)
    return bool(heap[one].order < heap[other].order)


@compiled
def _swap(heap: Records, one: int, other: int) -> None:
    a, b = heap[one], heap[other]
    a.last_step, b.last_step = b.last_step, a.last_step
    a.order, b.order = b.order, a.order
    a.request, b.request = b.request, a.request


@compiled
def push(state: Record, heap: Records, last_step: int, order: int, request: int) -> None:
    """Put an entry in; the caller sees to it that there is room."""
    child = state.heap_size
    state.heap_size += 1
    entry = heap[child]
    entry.last_step, entry.order, entry.request = last_step, order, request
    while child > 0:
        parent = (child - 1) // 2
        if not _is_before(heap, child, parent):
            return
        _swap(heap, child, parent)
        child = parent


@compiled
def drop_first(state: Record, heap: Records) -> None:
    """Take the smallest entry out."""
    state.heap_size -= 1
    if state.heap_size > 0:
        _swap(heap, 0, state.heap_size)
        sift(heap, state.heap_size, 0)


@compiled
def sift(heap: Records, size: int, parent: int) -> None:
    """Let an entry sink to its place."""
    while 2 * parent + 1 < size:
        child = 2 * parent + 1
        if child + 1 < size and _is_before(heap, child + 1, child):
            child += 1
        if not _is_before(heap, child, parent):
            return
        _swap(heap, child, parent)
        parent = child
