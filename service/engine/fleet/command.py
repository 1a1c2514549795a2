"""The command that starts one replica as it was sized: the whole of it, for each of its nodes."""

from dataclasses import dataclass, replace

from service.engine.engines.base import Engine
from service.engine.engines.classes import lacks_class
from service.engine.engines.flags.base import Args, CommandLine, Start
from service.engine.engines.runs_on import unrun
from service.engine.fleet.arguments import start_of
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.margin import safe_settings
from service.engine.memory.activation import fewest_batched_tokens
from service.engine.memory.kernels import needs_of
from service.engine.memory.plan import MemoryPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start one replica."""

    command: str | None  # None: no command starts it, and the notes say why; one line a node, each after a comment
    engine_args: Args
    notes: tuple[str, ...]


def launch(deployment: Deployment, flags: frozenset[str]) -> Launch:
    """Return the command of one replica, with no flag that this version of the engine does not have.

    Args:
        deployment: what to start.
        flags: those of the engine's version; empty where nobody knows.
    """
    safe = safe_settings(deployment)
    plan, engine = replace(deployment.plan, settings=safe.settings), deployment.plan.rules.serving_engine
    start, line = start_of(plan, deployment.resolved.stated), engine.command_line
    args, missing = _known((*line.arguments(start), *line.further(start)), flags)
    lacking = tuple(f"this version of {engine.name} has no {flag}: it may start otherwise" for flag in missing)
    elsewhere = (f"this version has no {flag}; {line.decisive[flag]}" for flag in missing if flag in line.decisive)
    if (refused := _refusal(plan, engine, start, line) or next(elsewhere, None)) is not None:
        return Launch(command=None, engine_args=args, notes=(*safe.notes, *lacking, f"no command: {refused}"))
    command = line.command(start, args, flags)
    if unknown := _unknown(command, flags):
        needed = f"no command: {start.num_nodes} servers need {', '.join(unknown)}, which this version has not"
        return Launch(command=None, engine_args=args, notes=(*safe.notes, *lacking, needed))
    return Launch(command=command, engine_args=args, notes=(*safe.notes, *lacking))


def _unknown(command: str, flags: frozenset[str]) -> tuple[str, ...]:
    """Return the flags of a command that the engine has not: those that join servers, as its arguments were read."""
    lines = (line for line in command.splitlines() if not line.startswith("#"))
    words = (word for line in lines for word in line.split() if word.startswith("--")) if flags else ()
    return tuple(dict.fromkeys(word for word in words if not {word, word.replace("--no-", "--", 1)} & flags))


def _refusal(plan: MemoryPlan, engine: Engine, start: Start, line: CommandLine) -> str | None:
    """Return why no command starts what was sized; None where one does."""
    model = plan.model
    if (unrun_here := unrun(plan.gpu, needs_of(model.architecture))) is not None:
        return unrun_here
    if engine.name in model.architecture.lacked_by:
        return f"{line.program[0]} has no {model.architecture.name}"
    lacking, release = model.architecture.lacked_until.get(engine.name), plan.device.release or engine.unstated_release
    if lacking is not None and lacks_class(lacking, release):
        return f"{line.program[0]} of {release} has no {model.architecture.name}: engine_version newer than {lacking}"
    if line.loading(start) is None:
        missing = (
            f"no {start.weight_format} checkpoint of {model.id} is known here, and no flag of the engine makes one"
        )
        return f"{missing}; model=OWNER/REPOSITORY names one that you know"
    if plan.settings.max_num_batched_tokens < (image := fewest_batched_tokens(model.architecture, plan.device)):
        return f"a step of max_num_batched_tokens holds no image whole, of {image} tokens"
    if start.num_nodes > 1 and (uneven := line.spreads_unevenly(start)) is not None:
        return uneven
    if "data_parallel_size" in line.unnamed(start):
        return f"no flag of the engine starts copies of the attention; a file of its own names {line.copies_in_file}"
    if "max_loras" in line.unnamed(start):
        return "no flag of the engine loads adapters; lora_config in a file of its own does"
    return None


def _known(args: Args, flags: frozenset[str]) -> tuple[Args, tuple[str, ...]]:
    """Return the arguments that the engine has, and the flags it has not."""
    if not flags:
        return args, ()
    kept: list[str] = []
    missing: list[str] = []
    is_kept = True
    for word in args:
        if word.startswith("--"):
            is_kept = word in flags or word.replace("--no-", "--", 1) in flags
            missing += [] if is_kept else [word]
        kept += [word] if is_kept else []
    return tuple(kept), tuple(missing)
