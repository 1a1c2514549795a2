"""How commands tell what is wrong: a line for each fault on standard error, and an exit code."""

import re
from typing import Final, NoReturn, Protocol

import typer

USAGE_ERROR: Final = 2
INFEASIBLE: Final = 3
NOT_ALL_ANSWERED: Final = 4  # of a batch
BESIDE_A_TEXT: Final = re.compile(r"\bquestion\.([a-z_]+)")  # what a body of /measurements has beside its text


def commands() -> typer.Typer:
    """Return a part of the command line, without any command yet."""
    return typer.Typer(rich_markup_mode=None, add_completion=False)


class Told(Protocol):
    """What is wrong with a field."""

    @property
    def field(self) -> str:
        """Return its name."""

    @property
    def detail(self) -> str:
        """Return what is wrong."""

    @property
    def accepted(self) -> str | None:
        """Return what would be right."""


def said(fault: Told) -> str:
    """Return a fault on one line; what is stated beside a log is an option here.

    >>> from service.questions.refusals import Fault
    >>> said(Fault("gpu", "the text does not say which gpu it was", "question.gpu, as /capacity takes it"))
    'gpu: the text does not say which gpu it was; accepted: --gpu, as /capacity takes it'
    """
    accepted = "" if fault.accepted is None or "accepted: " in fault.detail else f"; accepted: {fault.accepted}"
    line = f"{fault.field}: {fault.detail}{accepted}"
    return BESIDE_A_TEXT.sub(lambda match: "--" + match[1].replace("_", "-"), line)


def refuse(*lines: str, code: int = USAGE_ERROR) -> NoReturn:
    """Print why there is no answer to standard error, and leave."""
    for line in lines:
        typer.echo(line, err=True)
    raise typer.Exit(code)
