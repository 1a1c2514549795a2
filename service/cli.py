"""`sizer`: commands, each loaded when it is asked for. Questions take the same field names as over HTTP."""

import gc
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from service.cli_words import USAGE_ERROR, refuse

if TYPE_CHECKING:
    from service.cli_server import Server


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is not loaded yet."""

    module: str
    help: str  # what the list of commands says of it, as the command itself does
    is_asked_elsewhere: bool = False  # of the service that --server names; every other works on this machine


COMMANDS: Final[Mapping[str, Command]] = {
    "batch": Command("service.cli_server", "Ask a running service up to a thousand questions of a file", True),
    "serve": Command("service.cli_serving", "Serve the API."),
    "migrate": Command("service.cli_catalog", "Bring the database to the newest schema."),
    "seed": Command("service.cli_catalog", "Load the seed files; what was written over the API is left alone."),
    "warm": Command("service.cli_serving", "Compile what is compiled, and build step times."),
    "export-openapi": Command("service.cli_serving", "Write the contract."),
    "accuracy": Command("service.cli_calibration", "Compare the engine with measurements."),
    "fit-ledger": Command("service.cli_calibration", "Derive the ledger's constants from logged start-ups."),
    "fit-roofline": Command("service.cli_calibration", "Derive the roofline's efficiencies from measured kernels."),
    "fit-serving": Command("service.cli_calibration", "Derive the factors of step times from published runs."),
    "check": Command("service.cli_checking", "Hold a start-up log or a benchmark against the prediction.", True),
    "size": Command("service.cli_questions", "How many GPUs of this type?", True),
    "capacity": Command("service.cli_questions", "How much load do these GPUs carry?", True),
    "replicas": Command("service.cli_questions", "How many pods of this shape?", True),
    "recommend": Command("service.cli_questions", "Which GPU, layout and precision?", True),
    "compare": Command("service.cli_questions", "Many combinations side by side", True),
    "offers": Command("service.cli_catalog", "The catalog's offers."),
    "keys": Command("service.access.commands", "API keys: created and shown once, listed, revoked."),
    "measurements": Command("service.cli_checking", "What was measured here: stored by `check --store`."),
}


class Commands(TyperGroup):
    """Commands whose modules are imported when they are asked for: the list of them needs none."""

    def __init__(self, **stated: Any) -> None:
        """Know their names alone, of which those near to a slip are told."""
        super().__init__(**{**stated, "commands": dict.fromkeys(COMMANDS)})

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return one, loaded; None where there is none of this name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(COMMANDS[cmd_name].module)
        gc.enable()  # which `start.py` turned off
        loaded = get_command(module.app)
        return loaded.get_command(ctx, cmd_name) if isinstance(loaded, TyperGroup) else loaded

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write what each does."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help) for name, command in COMMANDS.items()])


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="How many GPUs does this LLM workload need?",
)


def _tell_version(is_asked: bool) -> None:  # noqa: FBT001 - as options call it
    """Print which version this is, and leave."""
    if is_asked:
        from importlib.metadata import version  # noqa: PLC0415 - loading it takes a twentieth of a second

        typer.echo(version("sizer"))
        raise typer.Exit


@app.callback()
def elsewhere(
    context: typer.Context,
    *,
    server: Annotated[
        str | None, typer.Option(envvar="SIZER_SERVER", help="a running service, which questions are then asked of")
    ] = None,
    key: Annotated[str | None, typer.Option(envvar="SIZER_KEY", help="a key of that service", show_envvar=True)] = None,
    is_version_asked: Annotated[
        bool, typer.Option("--version", callback=_tell_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """How many GPUs does this LLM workload need?"""
    del is_version_asked  # told before
    command = COMMANDS.get(context.invoked_subcommand or "")
    if server is not None and command is not None and not command.is_asked_elsewhere:
        _refuse_a_server(str(context.invoked_subcommand), server)
    key_source = context.get_parameter_source("key")
    if server is None and key_source is not None and key_source.name == "COMMANDLINE":
        refuse("--key: of no service; accepted: beside --server, or SIZER_SERVER")
    context.obj = None if server is None else _server(server, key)
    if server is None and any(name.upper().startswith("SIZER_") for name in os.environ):
        _tell_unknown_settings()


def _refuse_a_server(command: str, url: str) -> NoReturn:
    """Refuse a server that would be ignored: what is read and written is on this machine."""
    path = {"measurements": "/measurements", "offers": "/catalog/offers"}.get(command)
    instead = "" if path is None else f"; over HTTP: {url.rstrip('/')}{path}"
    refuse(f"--server: {command} works on this machine alone; leave out --server and SIZER_SERVER{instead}")


def _server(url: str, key: str | None) -> "Server":
    from service.cli_server import Server  # noqa: PLC0415 - loading it takes half a second

    return Server(url, key)


def _tell_unknown_settings() -> None:
    from service.settings import unknown_settings  # noqa: PLC0415 - as above

    for line in unknown_settings():
        typer.echo(line, err=True)


def main() -> None:
    """Run the command line; a setting, a database or a file that cannot be used is told in a line of its own."""
    try:
        app()
    except Exception as error:
        from service.cli_faults import lines_of  # noqa: PLC0415 - of what is wrong alone

        lines = lines_of(error)
        if lines is None:
            raise
        for line in lines:
            typer.echo(line, err=True)
        sys.exit(USAGE_ERROR)


if __name__ == "__main__":  # `python -m service.cli`, where no script is installed
    main()
