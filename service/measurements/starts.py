"""Which lines of a log are of one start: a container that was restarted goes on writing into the same log.

Sources:
    https://docs.docker.com/reference/cli/docker/container/logs (a log outlives a restart); what a start writes once:
    vLLM 0.6 to 0.33 `entrypoints/openai/api_server.py`, `v1/engine/core.py`; SGLang 0.5.23 `entrypoints/engine.py`
    (`_launch_subprocesses`); TensorRT-LLM `tensorrt_llm/__init__.py` (by each of its processes, before it loads).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from service.engine.patience import go_on
from service.measurements.keeping import Lines
from service.measurements.observed import Doubt, Observed, UnreadableTextError
from service.measurements.patterns import MOST_CHARACTERS, Pattern

# Whose line it is, where several containers or processes write into one log.
CONTAINER: Final = re.compile(r"([\w.-]{1,60}) *\||\[(pod/[\w./-]{1,120})\]")
CORE: Final = re.compile(r"\((EngineCore\w{0,12})\b")


@dataclass(frozen=True, slots=True)
class Begins:
    """A line that a start begins with."""

    expression: re.Pattern[str]
    is_single: bool = True  # one start writes it once


class Reader(Protocol):
    """What the starts of one engine are known by."""

    @property
    def begins(self) -> Sequence[Begins]:
        """Lines that a start begins with; the first of them that a log has counts."""

    @property
    def command(self) -> re.Pattern[str]:
        """The command that may stand above a start."""

    @property
    def patterns(self) -> Sequence[Pattern]:
        """Lines that say what was taken."""


def last_complete(read: Callable[[Lines], Observed], readers: Sequence[Reader], lines: Lines) -> Observed:
    """Return what the last complete start of a log says: the last one that tells of a cache, and did not fail.

    Raises:
        UnreadableTextError: none of several starts tells of its cache, or two lines of one contradict each other.
    """
    starts = _starts(readers, lines)
    if len(starts) == 1:
        return read(lines)
    failed: tuple[int, Observed] | None = None
    for start in reversed(starts):
        observed = read(start)
        cache = [each.value for name, each in observed.figures.items() if name.startswith("kv_cache")]
        if cache and min(cache) > 0 and not observed.refused_line:
            return _said(observed, start[0][0], starts)
        failed = failed or ((start[0][0], observed) if cache else None)
    if failed is not None:
        return _said(failed[1], failed[0], starts)
    read(lines)  # two servers are refused by what they contradict each other in
    sentence = f"start {len(starts)} of {len(starts)} begins here, and none of them says what its cache took"
    raise UnreadableTextError(starts[-1][0][0], sentence, "a log with the line of the cache of one start")


def _said(observed: Observed, line: int, starts: Sequence[Lines]) -> Observed:
    """Return a start with the sentence that says which one it is."""
    last = starts[-1][0][0]
    after = f"; the one from line {last} on did not get as far" if line != last else ""
    sentence = f"the log holds {len(starts)} starts: the last complete one, from line {line} on, was read{after}"
    observed.doubts.insert(0, Doubt(sentence=sentence, fields=()))
    return observed


def _starts(readers: Sequence[Reader], lines: Lines) -> list[Lines]:
    """Return the lines of each start, of the engine whose starts a log marks, with the command that stands above."""
    for reader in readers:
        for mark in reader.begins:
            if any(mark.expression.search(line[:MOST_CHARACTERS]) for _, line in lines):
                return list(_divided(reader, mark, lines))
    return [lines]


def _divided(reader: Reader, mark: Begins, lines: Lines) -> Iterator[Lines]:
    measured = [each.expression for each in reader.patterns if each.memory or each.figures]
    first, above = 0, None
    speakers, has_figure = set[tuple[str, str]](), False
    for place, (_, whole) in enumerate(lines):
        go_on()
        line = whole[:MOST_CHARACTERS]
        if mark.expression.search(line):
            speaker = _speaker(line)
            is_again = speaker in speakers
            if (has_figure and (is_again or not any(speaker))) or (mark.is_single and is_again):
                begun = place if above is None else above
                yield lines[first:begun]
                first, speakers, has_figure = begun, set(), False
            speakers.add(speaker)
            above = None
        elif reader.command.search(line):
            above = place if above is None else above
        elif (not has_figure or above is not None) and any(each.search(line) for each in measured):
            has_figure, above = True, None
    yield lines[first:]


def _speaker(line: str) -> tuple[str, str]:
    container, core = CONTAINER.match(line), CORE.search(line)
    return (container[1] or container[2] if container else "", core[1] if core else "")
