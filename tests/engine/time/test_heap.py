"""The compiled heap gives entries back as Python's own does."""

import heapq

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from service.engine.time.heap import drop_first, push

ENTRY = np.dtype([("last_step", np.int64), ("order", np.int64), ("request", np.int64)], align=True)
STATE = np.dtype([("heap_size", np.int64)], align=True)


@given(steps=st.lists(st.integers(0, 20), min_size=1, max_size=64))
@settings(max_examples=50, deadline=None)
def test_the_earliest_leaves_first_and_of_equals_who_joined_first(steps: list[int]) -> None:
    heap, state = np.zeros(len(steps), ENTRY).view(np.recarray), np.zeros(1, STATE).view(np.recarray)
    theirs: list[tuple[int, int]] = []
    for order, step in enumerate(steps):
        push(state[0], heap, step, order, order)
        heapq.heappush(theirs, (step, order))

    left = []
    while state[0].heap_size:
        left.append((int(heap[0].last_step), int(heap[0].request)))
        drop_first(state[0], heap)

    assert left == [heapq.heappop(theirs) for _ in steps]
