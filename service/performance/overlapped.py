"""Two batches that overlap: while tokens of the one are on their way to experts, the other computes.

    time(n) = 2 x computed(n / 2) + 2 x sent(n / 2) - hidden x 2 x min(computed(n / 2), sent(n / 2))

Kernels see half of the requests, or of the prompts' tokens; one request is no two batches.

Published beside the same pools without it (LMSYS, May 2025, H100), and what is said here:

    decode, 72 ranks     32 requests on each    0.73 times as fast       0.77    (64 ranks)
                         64 to 128              where it begins to gain  0.88, 1.06
                         256                    1.255                    1.14
    prompts, 32 ranks    8,192 tokens on each   1.27 to 1.35             1.28

Sources:
    SGLang 0.5.23 `batch_overlap/two_batch_overlap.py`; lmsys.org/blog/2025-05-05-large-scale-ep, "Ablation Study:
    Two-batch Overlap".
"""

from collections.abc import Iterable
from typing import Any, Final

HIDDEN: Final = 0.65  # of what could overlap
SENDING: Final = ("dispatch", "combine")  # in the names of what is sent


class Overlapping:
    """An engine of the library, whose steps are two batches that overlap."""

    def __init__(self, engine: Any) -> None:
        """Wrap an engine.

        Args:
            engine: with its steps in one batch.
        """
        self._engine = engine

    def decode_step_latency(self, requests: int, context: int, output: int) -> float:
        """Return the milliseconds of a step that decodes."""
        if requests < 2:
            return float(self._engine.decode_step_latency(requests, context, output))
        return _overlapped(self._engine.decode_step_per_op(requests // 2, context, output))

    def predict_prefill_latency(self, prompts: int, tokens: int) -> float:
        """Return the milliseconds of a step that reads prompts of so many tokens each."""
        half = (prompts // 2, tokens) if prompts > 1 else (1, tokens // 2)
        if not half[1]:
            return float(self._engine.predict_prefill_latency(prompts, tokens))
        read, _ = self._engine.run_static_per_op(batch_size=half[0], isl=half[1], osl=1, mode="static_ctx")
        return _overlapped(read)


def _overlapped(parts: Iterable[tuple[Any, ...]]) -> float:
    """Return the time of two batches from that of the parts of one. [ms].

    >>> _overlapped([("attention", 6.0), ("moe_dispatch", 1.0), ("moe", 2.0), ("moe_combine", 3.0)])
    18.8
    """
    sent = computed = 0.0
    for name, milliseconds, *_ in parts:
        if any(each in name for each in SENDING):
            sent += milliseconds
        else:
            computed += milliseconds
    return 2 * (computed + sent - HIDDEN * min(computed, sent))
