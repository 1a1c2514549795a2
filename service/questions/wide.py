"""What experts that are spread wide would take: the same question of SGLang over DeepEP, where fleets are large."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from service.engine.answers.exchange import WIDE_GPUS
from service.engine.answers.other_levers import Other
from service.engine.answers.results import Sizing
from service.engine.errors import EngineError
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.results import Scalar
from service.engine.fleet.wide import is_sized_on
from service.questions.refusals import RefusalError
from service.questions.sources import Sources

CHANGE: Final[Mapping[str, Scalar]] = {"engine": "sglang", "all2all_backend": "deepep"}


class Asked(Protocol):
    """A question as it was stated."""

    @property
    def engine(self) -> str:
        """Return the serving engine."""
        ...

    @property
    def levers(self) -> str:
        """Return which levers are looked for."""
        ...

    def model_copy(self, *, update: dict[str, Any]) -> Any:
        """Return the same with other fields."""
        ...


def wider(asked: Asked, question: SizeQuestion, sizing: Sizing, sources: Sources) -> tuple[Other, ...]:
    """Return the same question of experts that are spread wide; nothing where that is not sized, or the fleet small.

    Args:
        asked: as it was stated.
        question: as it is looked up.
        sizing: its answer.
        sources: where names are looked up.
    """
    is_stated, stored = question.settings.all2all_backend is not None, own_checkpoint(question.model).quantization
    if (
        asked.levers == "none"
        or sizing.gpus < WIDE_GPUS
        or is_stated
        or not is_sized_on(question.gpu, question.model.architecture, stored)
    ):
        return ()
    return tuple(
        Other(kind="all2all_backend", change=change, question=other)
        for made in (CHANGE, {**CHANGE, "enable_two_batch_overlap": True})
        if (other := _looked_up(asked, made, sources)) is not None
        and (change := {name: value for name, value in made.items() if value != asked.engine})
    )


def _looked_up(asked: Asked, made: Mapping[str, Scalar], sources: Sources) -> SizeQuestion | None:
    """Return the question with a change; None where it is refused."""
    try:
        changed: SizeQuestion = asked.model_copy(update={**made, "engine_version": None}).looked_up(
            replace(sources, readings=[])
        )
    except (EngineError, RefusalError):
        return None
    return changed
