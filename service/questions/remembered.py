"""What is remembered about models is bounded over all of them, however many are asked about."""

from collections import OrderedDict
from collections.abc import Iterable
from threading import Lock
from typing import Final

from service.engine.facts import ModelFacts

MOST_VALUES: Final = 65_536  # plans, layouts, searches and so on: about 80 MB of them (1.2 kB each over 104 questions)


class Remembered:
    """Forgets what was found out about the models not asked about for the longest, once it is too much in all.

    Each rule keeps so many values of each model; a catalog of 500 models would have room for a gigabyte of them.
    """

    def __init__(self, most_values: int = MOST_VALUES) -> None:
        """Start with nothing remembered; at most so many values are, but for those of the last model asked about."""
        self._most = most_values
        self._values: OrderedDict[ModelFacts, int] = OrderedDict()
        self._all = 0
        self._lock = Lock()

    def __len__(self) -> int:
        """Return how many values are remembered."""
        return self._all

    def note(self, models: Iterable[ModelFacts]) -> None:
        """Take note of models that were asked about, and forget others where they have grown too much."""
        with self._lock:
            for model in models:
                self._all -= self._values.pop(model, 0)
                self._values[model] = values = len(model.derived) + len(model.architecture.derived)
                self._all += values
            while self._all > self._most and len(self._values) > 1:
                model, values = self._values.popitem(last=False)
                self._all -= values
                model.derived.forget()
                model.architecture.derived.forget()
