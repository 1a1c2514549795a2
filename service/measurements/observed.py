"""What a text says was measured: settings as fields of a question, figures in base units, each with its line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from service.catalog.measurement_rows import Kind, Setting

MOST_SHOWN: Final = 120  # characters of a line that is refused


class UnreadableTextError(ValueError):
    """A text that is no measurement, or contradicts itself, with the line at fault."""

    def __init__(self, line: int, sentence: str, accepted: str) -> None:
        """Keep the line, counted from 1, what is wrong with it, and what would be accepted."""
        super().__init__(f"line {line}: {sentence}")
        self.line = line
        self.accepted = accepted


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What is stored of a text, and what it changes."""

    id: str | None  # None: nothing is stored
    changes: str  # rows and corrections, as assumptions of answers name them; empty where it changes nothing
    error_fraction: float | None  # that its corrections leave
    why_not: str  # why it changes nothing; empty where it does


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One thing that was measured."""

    name: str  # as answers name it: kv_cache_bytes, ttft_s.mean, ...
    value: float
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What a text leaves open, as long as none of some fields is stated."""

    sentence: str
    fields: tuple[str, ...]
    figures: tuple[str, ...] = ()  # that are not compared meanwhile
    assumed: Mapping[str, Setting] = field(default_factory=dict)  # meanwhile


@dataclass(slots=True, kw_only=True)
class Observed:
    """All that was read of a text."""

    what: str  # vLLM start-up log, GuideLLM report, ...
    kind: Kind
    settings: dict[str, Setting] = field(default_factory=dict)
    setting_lines: dict[str, int] = field(default_factory=dict)
    figures: dict[str, Figure] = field(default_factory=dict)
    doubts: list[Doubt] = field(default_factory=list)
    sampler_line: int = 0  # that names FlashInfer's sampler; 0 where none does
    refused_line: int = 0  # that says the engine did not start; 0 where none does
    lengths_vary: bool = False  # of a benchmark's answers: not all as long as their mean [yes or no]

    def state(self, name: str, value: Setting, line: int) -> None:
        """Keep a setting.

        Raises:
            UnreadableTextError: another line states it otherwise: there are two servers in the text.
        """
        before = self.settings.get(name)
        if before is not None and before != value:
            sentence = f"{name} is {value!r:.80}, and line {self.setting_lines[name]} says {before!r:.80}"
            raise UnreadableTextError(line, sentence, "the log of one start-up")
        self.settings[name] = value
        self.setting_lines.setdefault(name, line)

    def see(self, name: str, value: float, line: int) -> None:
        """Keep a figure; of several ranks the last one that says it."""
        self.figures[name] = Figure(name=name, value=value, line=line)
