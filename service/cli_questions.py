"""Questions on the command line: a command each, with an option for each of its fields."""

import json
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from pydantic import ValidationError
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from service.catalog.database import make_engine
from service.catalog.keeper import CatalogKeeper
from service.cli_words import INFEASIBLE, USAGE_ERROR, commands, refuse, said
from service.engine.errors import EngineError
from service.measurements.corrections import StoredMeasurements
from service.performance.kernel_tables import InProcess, KernelTables
from service.performance.stored import TableFiles
from service.performance.timers import KernelTimers
from service.questions.asked import Desk, Question
from service.questions.fields import lists_of
from service.questions.formats import written
from service.questions.misnamed import misnamed
from service.questions.misread import misread, unknown_field
from service.questions.reading import read_json
from service.questions.refusals import Fault, RefusalError, stated_twice
from service.settings import Settings

OF_ALL_COMMANDS: Final = ("server", "key")  # as `cli` takes them
QUESTION_SETTINGS = {
    "allow_extra_args": True,
    "ignore_unknown_options": True,
    "token_normalize_func": lambda name: name.replace("_", "-"),
}


class Questions(TyperGroup):
    """Questions by name, each read when it is asked: the fields of all five take a third of a second."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of a question."""
        del ctx
        of_one = commands()
        add_question(of_one, getattr(import_module(f"service.questions.{cmd_name}"), cmd_name.upper()))
        return get_command(of_one)


app = typer.Typer(cls=Questions, rich_markup_mode=None, add_completion=False)


@app.callback()
def questions() -> None:
    """Ask a question."""


class QuestionCommand(TyperCommand):
    """A command whose every option has a value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options, but for a last one without a value."""
        last = args[-1] if args else ""
        if last.startswith("--") and "=" not in last and last not in ctx.help_option_names:
            refuse(f"{last} has no value")
        return super().parse_args(ctx, args)


def add_question(to: typer.Typer, question: Question) -> None:
    """Add the command that asks a question, with an option for each of its fields."""

    def ask(context: typer.Context, **stated: list[str] | None) -> None:
        fields = _fields(question, {name: values for name, values in stated.items() if values}, context.args)
        if context.obj is None:
            _answer(question, fields)
        else:
            context.obj.answer(question.name, fields)  # a service elsewhere

    options = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=type_) for name, type_ in _options(question)
    ]
    first = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    ask.__signature__ = Signature([first, *options])  # type: ignore[attr-defined]
    ask.__annotations__ = {option.name: option.annotation for option in (first, *options)}
    to.command(question.name, cls=QuestionCommand, help=_help(question), context_settings=QUESTION_SETTINGS)(ask)


def _options(question: Question) -> Iterator[tuple[str, Any]]:
    """Yield a type of option for each field, which help shows with its words, its units and what it accepts."""
    shapes = question.body.model_json_schema()["properties"]
    for name in question.fields:
        default = shapes[name].get("default")
        words = shapes[name]["description"] + ("" if default is None else f" (default: {json.dumps(default)})")
        flag = "--" + name.replace("_", "-")
        yield name, Annotated[list[str] | None, typer.Option(flag, help=words, metavar=_accepted(shapes[name]))]


def _accepted(shape: Mapping[str, Any]) -> str:
    """Return what an option accepts, from the JSON schema of its field."""
    shape = next((choice for choice in shape.get("anyOf", ()) if choice["type"] != "null"), shape)
    if "enum" in shape:
        return "|".join(str(value) for value in shape["enum"])
    names = {"boolean": "true|false", "array": "NAME,...", "object": "FILE"}
    return names.get(shape["type"], str(shape["type"]).upper())


def _help(question: Question) -> str:
    """Return what a command answers, with one question as it is typed."""
    example = next(iter(question.examples.values()))["value"]
    values = {name: ",".join(map(str, value)) if isinstance(value, list) else value for name, value in example.items()}
    typed = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in values.items())
    return f"{question.summary}\n\nsizer {question.name} {typed}"


def _fields(question: Question, stated: Mapping[str, list[str]], rest: Sequence[str]) -> dict[str, Any]:
    """Return options as fields; a model config is read from a file."""
    if rest and not rest[0].startswith("--"):
        refuse(f"{rest[0]!r} is not an option; write --field value")
    if rest:
        refuse(*(_unknown(question, word) for word in rest if word.startswith("--")))
    lists = lists_of(question.body)
    twice = [name for name, values in stated.items() if len(values) > 1 and name not in lists]
    if twice:
        refuse(*map(said, stated_twice(twice).faults))
    fields: dict[str, Any] = {name: values if name in lists else values[0] for name, values in stated.items()}
    if "model_config" in fields:
        fields["model_config"] = _config(Path(fields["model_config"]))
    return fields


def _unknown(question: Question, word: str) -> str:
    """Return what is said of an option that no field has, or that stands behind the command and not before it."""
    name = word.removeprefix("--").partition("=")[0].replace("-", "_")
    if name in OF_ALL_COMMANDS:
        return f"--{name}: of all commands; accepted: before this one, as in sizer --{name} ... {question.name} ..."
    return said(unknown_field(name, question.fields, f"a name that sizer {question.name} --help lists"))


def _config(path: Path) -> Any:
    try:
        config, twice = read_json(path.read_bytes())
    except (OSError, ValueError):
        refuse(f"--model-config {path}: not a readable JSON file")
    if twice:
        refuse(*map(said, stated_twice(twice).faults))
    return config


def _answer(question: Question, fields: Mapping[str, Any]) -> None:
    """Print the answer to a question; a refusal goes to standard error with exit code 2, 3 where there is no number."""
    settings = Settings()
    keeper = CatalogKeeper(make_engine(settings.database_url), None, settings.snapshot_poll_seconds)
    try:
        asked = question.body.model_validate(fields)
        timers = KernelTimers(KernelTables(TableFiles(settings.tables_path), InProcess()))
        answer = Desk(timers, corrections=StoredMeasurements()).answer(question, asked, keeper.snapshot)
        typer.echo(written(answer, asked).text, nl=False)
    except ValidationError as error:
        names = misnamed(fields, keeper.snapshot)
        refuse(*map(said, misread(error.errors(), question.fields, misnamed=names).faults))
    except EngineError as error:
        refuse(said(Fault(error.field, error.detail, error.accepted)))
    except RefusalError as error:
        told = map(said, error.faults) if error.faults and error.kind != "not-in-catalog" else (error.detail,)
        refuse(*told, code=INFEASIBLE if error.kind == "infeasible" else USAGE_ERROR)
