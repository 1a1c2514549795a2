"""Builds tables of measured kernels in a process of its own, which goes away when nobody asks.

The library's kernels take hundreds of megabytes that only the end of a process gives back for certain.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock, Timer
from typing import IO, Any, Final

from service.engine.inputs import Layout
from service.performance.measured import KernelLibrary
from service.performance.stored import Kernels, Refusal, as_message, from_message
from service.performance.tables import StepTables

IDLE_S: Final = 60.0  # without a question, until the process ends
COMMAND: Final = (sys.executable, "-m", "service.performance.builder")


class Builder:
    """One process that builds tables, started when asked; safe to share between threads, one table at a time."""

    def __init__(self, idle_s: float = IDLE_S) -> None:
        """Start nothing yet.

        Args:
            idle_s: without a question, until the process ends. [s]
        """
        self._idle_s = idle_s
        self._lock = Lock()
        self._process: subprocess.Popen[str] | None = None
        self._idle: Timer | None = None
        self._library = KernelLibrary()  # where no other process can be had

    def build(self, kernels: Kernels) -> StepTables | Refusal:
        """Return the tables of measured kernels; in this process where no other can be had."""
        with self._lock:
            self._stay()
            try:
                return from_message(self._asked(kernels.asked()))
            except (OSError, ValueError):
                self._end()
        return self._library.build(kernels)

    @property
    def process_id(self) -> int | None:
        """Return the process that builds; None while there is none."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _asked(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._process is None:
            # Its own words go to our standard error; what it answers comes alone. A terminal's Ctrl-C is for this
            # process, which ends the other.
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
            )
        asked, answers = self._process.stdin, self._process.stdout
        if asked is None or answers is None:
            raise OSError("the builder has no pipes")
        asked.write(json.dumps(question, default=dict) + "\n")
        asked.flush()
        answer: Mapping[str, Any] = json.loads(answers.readline())
        return answer

    def _stay(self) -> None:
        """Put the end off."""
        if self._idle is not None:
            self._idle.cancel()
        self._idle = Timer(self._idle_s, self.close)
        self._idle.daemon = True
        self._idle.start()

    def _end(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self._process is not None:
            process, self._process = self._process, None
            process.terminate()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):  # what was not read by a process that died
                        pipe.close()


def main() -> None:
    """Answer questions, one a line, until there are no more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what the library prints is no answer
    answer_all(sys.stdin, answers)


def answer_all(questions: IO[str], answers: IO[str]) -> None:
    """Write one answer for each question."""
    library = KernelLibrary()
    for line in questions:
        asked = json.loads(line)
        kernels = Kernels(**{**asked, "layout": Layout(**asked["layout"]), "modes": tuple(asked["modes"])})
        answers.write(json.dumps(as_message(library.build(kernels))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
