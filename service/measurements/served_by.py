"""What served a benchmark whose result is printed: the command of a server that stands beside it, or its arguments.

Source:
    vLLM `entrypoints/serve/utils/api_utils.py`, formerly `entrypoints/utils.py` (`log_non_default_args`: a server
    prints them, and no client does).
"""

import re
from collections.abc import Sequence
from typing import Final

from service.engine.inputs import EngineName
from service.engine.patience import go_on
from service.measurements.arguments import keep_arguments, whole_commands
from service.measurements.keeping import Lines
from service.measurements.observed import Observed, UnreadableTextError
from service.measurements.patterns import MOST_CHARACTERS, read_lines
from service.measurements.startup_logs import READERS, settle

MOST_COMMANDS: Final = 20  # that differ, of one engine beside one result
REPOSITORY: Final = re.compile(r"[\w-][\w.-]*/[\w-][\w.-]*")  # of a model, not a folder


def keep_server(observed: Observed, lines: Lines) -> None:
    """Keep the engine and the settings of the server's command, as far as the result does not say them.

    Raises:
        UnreadableTextError: there are commands of several engines, or of two servers of one.
    """
    commands: dict[EngineName, dict[str, int]] = {}
    printed: dict[EngineName, dict[str, int]] = {}
    for place, line in whole_commands(lines):
        go_on()
        for reader in READERS:
            if reader.command.search(line[:MOST_CHARACTERS]):
                commands.setdefault(reader.engine, {}).setdefault(line[:MOST_CHARACTERS].strip(), place)
            elif reader.arguments is not None and reader.arguments.search(line[:MOST_CHARACTERS]):
                printed.setdefault(reader.engine, {}).setdefault(line[:MOST_CHARACTERS].strip(), place)
    commands = commands or printed
    stated = observed.settings.get("engine")
    own = {engine: found for engine, found in commands.items() if stated in (None, engine)}
    if len(own) > 1:
        raise _second(sorted(min(found.values()) for found in own.values())[1])
    for engine, found in own.items():
        if len(found) > MOST_COMMANDS:
            raise _second(sorted(found.values())[1])
        _add(observed, _one_of([_server(observed, engine, line, place) for line, place in found.items()]))
        _add(observed, _release(observed, engine, lines))


def _server(observed: Observed, engine: EngineName, line: str, place: int) -> Observed:
    """Return what one command says of its server."""
    server = Observed(what=observed.what, kind=observed.kind)
    server.state("engine", engine, place)
    keep_arguments(server, engine, [(place, line)])
    settle(server)
    return server


def _release(observed: Observed, engine: EngineName, lines: Lines) -> Observed:
    """Return the version that a server printed.

    Raises:
        UnreadableTextError: two versions are printed.
    """
    server = Observed(what=observed.what, kind=observed.kind)
    read_lines(server, next(reader.release for reader in READERS if reader.engine == engine), lines)
    return server


def _one_of(servers: Sequence[Observed]) -> Observed:
    """Return the one that commands are of: a sentence may name it with less than it was started with.

    Raises:
        UnreadableTextError: they are of two.
    """
    fullest = max(servers, key=lambda server: len(server.settings))
    other = next((each for each in servers if not each.settings.items() <= fullest.settings.items()), None)
    if other is not None:
        raise _second(max(fullest.setting_lines["engine"], other.setting_lines["engine"]))
    return fullest


def _add(observed: Observed, server: Observed) -> None:
    """Keep what a server's command says beside a result, and doubt; what it loads by its own name was served."""
    for name, value in server.settings.items():
        if name not in observed.settings or (name == "model" and REPOSITORY.fullmatch(str(value))):
            observed.settings[name] = value
            observed.setting_lines[name] = server.setting_lines[name]
    observed.doubts.extend(server.doubts)


def _second(place: int) -> UnreadableTextError:
    return UnreadableTextError(place, "a second server's command stands here", "the command of one server")
