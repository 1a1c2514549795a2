"""Whether open loops hold, and whether what is sized at a confidence keeps the limits that a run had to keep."""

from dataclasses import replace
from typing import Final

from service.calibration.serving import Run, simulated
from service.engine import GROWING, ScheduleResult, Timing, slower_timing

# A queue that takes more than this share of arrivals never empties.
MEDIAN: Final = 50.0
CONFIDENCE: Final = 0.9
# Submitters ask for as much as their limits allow: one tenth more would break them.
BEYOND: Final = 1.1
LIMITED_PERCENTILE: Final = 99.0


def saturates(run: Run, timing: Timing) -> bool | None:
    """Return whether arrivals pile up by our times; None for users, who wait."""
    rate = run.load.request_rate_per_s
    if rate is None:
        return None
    return simulated(run, timing, run.load).queue_growth_per_s > GROWING * rate


def saturated(run: Run) -> bool:
    """Return whether arrivals piled up as measured: as stated, else by their waits, else by how many were answered."""
    if run.log.saturated is not None:
        return run.log.saturated
    if run.log.sent.is_steady:
        return False
    waiting = _waiting_fraction(run)
    return waiting > GROWING if waiting is not None else _answered_fraction(run) < 1 - GROWING - _chance(run)


def _waiting_fraction(run: Run) -> float | None:
    """Return by how much first tokens come later and later; None where nobody measured them.

        wait of the last / time in which all arrived = 2 x median wait x rate / requests

    In a queue that grows evenly the last waits twice as long as the median.
    """
    sent, seen = run.log.sent, [seen for seen in run.log.latencies if seen.quantity == "ttft"]
    central = {each.percent: each.value_s for each in seen}
    middle = central.get(MEDIAN, central.get(None))
    if middle is None or not sent.request_rate_per_s or not sent.count:
        return None
    return 2 * middle * sent.request_rate_per_s / sent.count


def _chance(run: Run) -> float:
    """Return by how much the time of so few arrivals may be off by chance, at two standard deviations; even ones: 0."""
    sent = run.log.sent
    return 2 / (sent.count * sent.burstiness) ** 0.5 if sent.count else 0.0


def _answered_fraction(run: Run) -> float:
    """Return answered over sent; a short run ends later than its last arrival, by one request."""
    sent, tokens_per_s = run.log.sent, run.log.tokens_per_s
    if not sent.request_rate_per_s or not tokens_per_s or not sent.count:
        return 1.0
    longest_s = next((seen.value_s for seen in run.log.latencies if seen.quantity == "e2e"), 0.0)
    lasted_s = sent.count * run.log.output_tokens / tokens_per_s - longest_s
    return sent.count / sent.request_rate_per_s / lasted_s if lasted_s > 0 else 1.0


def keeps_limits(run: Run, timing: Timing) -> bool | None:
    """Return whether what is sized at 0.9 for a run's limits is no smaller than what ran; None without limits.

    The run kept its limits at its rate. Its GPUs would be too few if they were taken to keep them at a tenth more.
    """
    rate = run.load.request_rate_per_s
    if rate is None or not run.log.limits_s:
        return None
    load = replace(run.load, request_rate_per_s=BEYOND * rate)
    seen = simulated(run, slower_timing(timing, CONFIDENCE, 0.0), load)
    return not _within(run, seen)


def _within(run: Run, seen: ScheduleResult) -> bool:
    samples = {"ttft": seen.ttft_s, "tpot": seen.tpot_s}
    return all(
        samples[quantity].percentile(LIMITED_PERCENTILE) <= limit
        for quantity, limit in run.log.limits_s.items()
        if quantity in samples
    )
