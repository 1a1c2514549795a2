"""Which of a limit and a rate held requests back, where a run was started with both."""

from typing import Final

# Of the limit, in flight on average; a run that the limit held back is below it at its beginning and end alone.
LEAST_FULL: Final = 0.5


def is_limit_idle(limit: float, prompts: float = 0.0, most_running: float = 0.0, mean_running: float = 0.0) -> bool:
    """Return whether a limit of requests in flight held none of a run back; what is 0 is not known.

    A limit of one is a load of its own: requests one after another.

    Formula:
        idle if prompts <= limit, or most_running < limit, or mean_running < limit / 2

    Source:
        vLLM 0.33 `benchmarks/serve.py` (`benchmark`: "request_rate controls how often requests are initiated", and a
        semaphore of `max_concurrency` below it; "Peak concurrent requests" counts all of a second, so that it is never
        too small); SGLang 0.5.23 `benchmark/serving.py` (the same two; "Concurrency" is the mean).

    >>> is_limit_idle(256, prompts=200), is_limit_idle(64, 500, most_running=64), is_limit_idle(64, 500, 0, 9.5)
    (True, False, True)
    """
    if limit <= 1:
        return False
    return 0 < prompts <= limit or 0 < most_running < limit or 0 < mean_running < LEAST_FULL * limit


def running(requests_per_s: float, ttft_s: float, tpot_s: float, output_tokens: float) -> float:
    """Return how many requests were in flight on average, and 0 where one of the figures is not known.

    Formula:
        requests_per_s x (ttft_s + (output_tokens - 1) x tpot_s)

    Source:
        J. D. C. Little 1961, "A Proof for the Queuing Formula: L = lambda W", Operations Research 9(3).

    >>> running(2.0, 0.5, 0.01, 101)
    3.0
    """
    is_known = min(requests_per_s, ttft_s, output_tokens) > 0
    return requests_per_s * (ttft_s + (output_tokens - 1) * tpot_s) if is_known else 0.0
