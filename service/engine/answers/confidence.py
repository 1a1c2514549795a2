"""Sized at a confidence: the GPUs that keep the limits with a probability, and what others would take."""

from dataclasses import replace
from typing import Final

from service.engine.answers.results import Confidence, ConfidentCount
from service.engine.errors import EngineError
from service.engine.fleet.choice import deployments
from service.engine.fleet.pools import pools_for
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.ranking import best
from service.engine.fleet.results import Assumption
from service.engine.time.confidence import MEDIAN, slowdown, slower
from service.engine.time.results import Latency

SHOWN: Final = (0.5, 0.8, 0.95)


def at(question: SizeQuestion, probability: float) -> SizeQuestion:
    """Return the question under times that hold with a probability; the median is asked for.

    They are the times of every other question. What the sample may err is told and not added: it is little beside
    what the basis may, and `/recommend` and `/capacity` could add it only after simulating every option twice.
    """
    return replace(question, timers=slower(question.timers, probability, 0.0), confidence=None)


def median_only() -> Confidence:
    """Return what is said where nobody asked for a confidence."""
    return Confidence(probability=MEDIAN, slowdown=1.0, sample_error_fraction=None, counts=())


def confidence_of(
    question: SizeQuestion, probability: float, gpus: int, latency: Latency | None, sample_error_fraction: float
) -> Confidence:
    """Return the count at each shown confidence, and by how much times were slowed.

    Args:
        question: what was asked.
        probability: the confidence that was asked for.
        gpus: what it takes.
        latency: of the answer; None where nobody tells time.
        sample_error_fraction: of the simulated percentile.
    """
    error = 0.0 if latency is None else latency.pace_error_fraction
    shown = {asked: _gpus(at(question, asked)) for asked in SHOWN if asked != probability}
    shown[probability] = gpus
    return Confidence(
        probability=probability,
        slowdown=1.0 if latency is None else slowdown(error, 0.0, probability),
        sample_error_fraction=None if latency is None else sample_error_fraction,
        counts=tuple(ConfidentCount(probability=asked, gpus=shown[asked]) for asked in sorted(shown)),
    )


def _gpus(question: SizeQuestion) -> int:
    """Return the GPUs that a question takes; 0 where none carry the load."""
    try:
        if question.disaggregated:
            pair = pools_for(question)
            return pair.gpus if pair.is_feasible else 0
        return best(deployments(question), question).gpus
    except EngineError:
        return 0


def stated_in(told: tuple[Assumption, ...], confidence: float) -> tuple[Assumption, ...]:
    """Return what a sizing rests on, with the confidence that was asked for in the place of the median."""
    stated = Assumption(name="confidence", value=confidence, origin="request", source=None)
    return tuple(stated if each.name == "confidence" else each for each in told)
