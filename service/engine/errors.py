"""The engine's refusals, as a tree; nothing here knows of HTTP.

EngineError
├── UnsupportedModelError   a layer kind, field or architecture the rules do not know
├── MissingConfigFieldError a field the rules need and the config does not state
├── UnsupportedLayoutError  a parallel layout the engine would refuse to start
├── RefusedStartError       a GPU, weight format or cache the engine's version would refuse to start with
└── InvalidQuestionError    inputs that contradict each other
"""

from collections.abc import Sequence


class EngineError(ValueError):
    """A question the engine refuses, with the field at fault and what would be accepted."""

    def __init__(
        self, detail: str, *, field: str, accepted: str | None = None, others: tuple["EngineError", ...] = ()
    ) -> None:
        """Keep the sentence, the name of the field at fault, what would be accepted, and what else is at fault."""
        super().__init__(detail)
        self.detail = detail
        self.field = field
        self.accepted = accepted
        self.others = others


class UnsupportedModelError(EngineError):
    """The model has a layer kind or architecture without a rule; it is never approximated."""


class MissingConfigFieldError(EngineError):
    """The model's config lacks a field that the rules need."""


class UnsupportedLayoutError(EngineError):
    """The serving engine would refuse this parallel layout."""


class RefusedStartError(EngineError):
    """The serving engine's version would refuse to start such a model on such a GPU."""


class InvalidQuestionError(EngineError):
    """Two inputs contradict each other."""


def raise_own(refused: Sequence[EngineError], asked: int) -> None:
    """Raise what a question alone is at fault for: nothing of all it asks about is answered, and a field says why.

    Args:
        refused: what was refused of all that was asked about.
        asked: how much that is.

    Raises:
        EngineError: a layout that no such model has, or inputs that contradict each other.
    """
    own = [error for error in refused if isinstance(error, UnsupportedLayoutError | InvalidQuestionError)]
    if own and len(refused) == asked:
        raise own[0]
