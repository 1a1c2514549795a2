"""What results of benchmarks have in common: the load that is kept, figures that are no zero, failures that refuse."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from service.catalog.measurement_rows import MOST_MEASURED
from service.measurements.observed import Doubt, Observed, UnreadableTextError

LOADS: Final = ("concurrent_requests", "request_rate_per_s")  # of which a run has one
Lines = Sequence[tuple[int, str]]  # with their numbers, from 1
MOST_FAILED: Final = 0.01  # of all requests; above it those that were answered met another load than the stated one
STATISTICS: Final = {"mean": "mean", "avg": "mean", "median": "p50", "p50": "p50", "p95": "p95", "p99": "p99"}
MS: Final = 1e-3
MOST_EVEN: Final = 1e3  # of what /capacity takes; more even arrivals come by the clock


def check_answered(failed: float, asked: float, line: int = 1) -> None:
    """Raise UnreadableTextError where so many requests failed that the load was another than the stated one."""
    if failed > MOST_FAILED * asked:
        sentence = f"{failed:,.0f} of {asked:,.0f} requests failed: the others met less than the stated load"
        raise UnreadableTextError(line, sentence, f"a run of which at most {MOST_FAILED:.0%} failed")


def check_single(places: Sequence[int]) -> None:
    """Raise UnreadableTextError where a second result begins."""
    if len(places) > 1:
        raise UnreadableTextError(places[1], "a second result begins here", "the result of one run")


def put(observed: Observed, name: str, value: object, scale: float = 1.0, line: int = 1) -> None:
    """Keep a figure, if it is a number above zero; zero is what tools write of what they did not measure."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        observed.see(name, value * scale, line)
    elif isinstance(value, int | float) and value < 0:
        leave_out(observed, name, f"{value:g}", line)


def leave_out_endless(observed: Observed) -> None:
    """Leave out figures beyond all that can be stored; each by the name that answers give it."""
    for name, figure in tuple(observed.figures.items()):
        if not abs(figure.value) <= MOST_MEASURED:
            del observed.figures[name]
            leave_out(observed, name, f"{figure.value:g}", figure.line)


def leave_out(observed: Observed, name: str, said: str, line: int) -> None:
    """Say of a figure that it is not used, as nothing that is measured is less than nothing, infinite or undefined."""
    sentence = f"line {line}: {name} is {said}, which nothing can measure: it is not used"
    observed.doubts.append(Doubt(sentence=sentence, fields=()))


def state(observed: Observed, name: str, value: object, line: int = 1) -> None:
    """Keep a setting, if it says anything."""
    if isinstance(value, str | int | float) and not isinstance(value, bool) and value not in ("", "inf", 0):
        observed.state(name, value, line)


def keep_load(observed: Observed, concurrency: object, rate: object, line: int = 1) -> None:
    """Keep the load: a concurrency where one is stated, else the rate of arrivals."""
    if isinstance(concurrency, int | float) and concurrency > 0:
        state(observed, "concurrent_requests", max(round(concurrency), 1), line)
    elif isinstance(rate, int | float) and 0 < rate < float("inf"):
        state(observed, "request_rate_per_s", float(rate), line)


def assume_at_once(observed: Observed, prompts: float) -> None:
    """Take a run of which neither a rate nor a limit is told for one whose prompts were all sent at once, and say so.

    Source:
        vLLM 0.33 `benchmarks/serve.py`: what was left at its default, infinite and none, is not printed.
    """
    if prompts < 1 or any(load in observed.settings for load in LOADS):
        return
    sentence = (
        f"neither a rate of requests nor how many ran at once is told, so {prompts:.0f} prompts are taken to have been "
        "sent all at once, as by default: state request_rate_per_s or concurrent_requests if they were not"
    )
    assumed = {"concurrent_requests": round(prompts)}
    observed.doubts.append(Doubt(sentence=sentence, fields=LOADS, assumed=assumed))


def keep_bursts(observed: Observed, burstiness: object) -> None:
    """Keep how arrivals bunch: at 1 gaps are exponential.

    Source:
        vLLM 0.33 `benchmarks/serve.py` (`--burstiness`: the shape of a gamma distribution).
    """
    shape = number_in(burstiness)
    if "request_rate_per_s" in observed.settings and shape not in (0.0, 1.0):
        state(observed, "burstiness", min(shape, MOST_EVEN))


def number_in(value: object) -> float:
    """Return a number, and 0 for what is none."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else 0.0


def mapping_in(*values: object) -> Mapping[str, Any]:
    """Return the first of several that is an object with something in it."""
    return next((value for value in values if isinstance(value, Mapping) and value), {})


def inside(document: Any, *path: str) -> Any:
    """Return what lies at the end of a path of names; None where it breaks off."""
    for name in path:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document
