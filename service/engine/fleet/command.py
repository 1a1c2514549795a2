"""The command that starts one replica as it was sized: the whole of it, for each of its nodes."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from service.engine.arithmetic import ceil_div
from service.engine.fleet.arguments import Flags, engine_args, loading_flags
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.margin import needs_half, needs_remote_code, safe_settings
from service.engine.inputs import EngineName, Layout
from service.engine.memory.plan import MemoryPlan

HEAD: Final = "HEAD_ADDRESS"
RENDEZVOUS_PORT: Final = 29500
UNNAMED_MODEL: Final = "PATH_OF_THE_MODEL"
PROGRAMS: Final[dict[EngineName, tuple[str, ...]]] = {
    "vllm": ("vllm", "serve"),
    "sglang": ("python", "-m", "sglang.launch_server", "--model-path"),
    "tensorrt-llm": ("trtllm-serve",),
}
NEW_WITH: Final = "--nnodes"  # vLLM starts its own workers on several nodes since 0.11.1; Ray did before


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How to start one replica."""

    command: str | None  # None: no command starts it, and the notes say why; one line a node, each after a comment
    engine_args: Flags
    notes: tuple[str, ...]


def launch(deployment: Deployment, flags: frozenset[str]) -> Launch:
    """Return the command of one replica, with no flag that this version of the engine does not have.

    Args:
        deployment: what to start.
        flags: those of the engine's version; empty where nobody knows.
    """
    safe = safe_settings(deployment)
    plan = replace(deployment.plan, settings=safe.settings)
    stated = deployment.resolved.stated
    wanted = (*engine_args(plan.rules.engine, plan, stated), *_further(plan))
    args, missing = _known(wanted, flags)
    lacking = tuple(f"this version of {plan.rules.engine} has no {flag}: it may start otherwise" for flag in missing)
    reasons = tuple(_reasons(plan))
    if reasons:
        return Launch(command=None, engine_args=args, notes=(*safe.notes, *lacking, *reasons))
    return Launch(command=_command(plan, args, flags), engine_args=args, notes=(*safe.notes, *lacking))


def _further(plan: MemoryPlan) -> Iterator[str]:
    """Yield flags that the model and the GPU ask for."""
    engine = plan.rules.engine
    if engine != "tensorrt-llm" and needs_half(plan) and "--dtype" not in (loading_flags(plan) or ()):
        yield from ("--dtype", "half")
    if needs_remote_code(plan):
        yield "--trust_remote_code" if engine == "tensorrt-llm" else "--trust-remote-code"


def _reasons(plan: MemoryPlan) -> Iterator[str]:
    """Yield why no command starts this."""
    if loading_flags(plan) is None:
        loaded = plan.checkpoint.weight_format
        yield f"no command: nobody published {plan.model.id} in {loaded}, and no flag of the engine makes it so"


def _known(args: Flags, flags: frozenset[str]) -> tuple[Flags, tuple[str, ...]]:
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


def _command(plan: MemoryPlan, args: Flags, flags: frozenset[str]) -> str:
    """Return the command of every node of one replica."""
    checkpoint = plan.checkpoint if plan.checkpoint in plan.model.checkpoints else own_checkpoint(plan.model)
    words = (*PROGRAMS[plan.rules.engine], checkpoint.hf_id or UNNAMED_MODEL, *args)
    nodes = ceil_div(plan.layout.gpus_per_replica, plan.gpu.gpus_per_node)
    if nodes == 1:
        return shlex.join(words)
    match plan.rules.engine:
        case "vllm":
            return _vllm_nodes(plan.layout, words, nodes, flags)
        case "sglang":
            joined = ("--nnodes", str(nodes), "--dist-init-addr", f"{HEAD}:{RENDEZVOUS_PORT}")
            return _by_node([(*words, *joined, "--node-rank", str(node)) for node in range(nodes)])
        case "tensorrt-llm":
            ranks = ("mpirun", "-n", str(plan.layout.gpus_per_replica), "trtllm-llmapi-launch")
            placed = ("--gpus_per_node", str(plan.gpu.gpus_per_node))
            return f"# over {nodes} nodes, by MPI from the first\n{shlex.join((*ranks, *words, *placed))}"
        case _ as never:
            assert_never(never)


def _vllm_nodes(layout: Layout, words: Sequence[str], nodes: int, flags: frozenset[str]) -> str:
    """Return vLLM's commands over several nodes: copies of the attention spread, or one engine across them.

    Source:
        vLLM 0.33 `engine/arg_utils.py` (--nnodes, --data-parallel-size-local); docs, data parallel deployment.
    """
    if layout.data_parallel_size >= nodes:
        local = ceil_div(layout.data_parallel_size, nodes)
        shared = ("--data-parallel-size-local", str(local), "--data-parallel-address", HEAD)
        ports = ("--data-parallel-rpc-port", str(RENDEZVOUS_PORT))
        first = (*words, *shared, *ports)
        others = [(*first, "--headless", "--data-parallel-start-rank", str(node * local)) for node in range(1, nodes)]
        return _by_node([first, *others])
    if flags and NEW_WITH not in flags:
        started = f"# on node 0: ray start --head; on the others: ray start --address={HEAD}:6379; then on node 0\n"
        return started + shlex.join((*words, "--distributed-executor-backend", "ray"))
    joined = (*words, "--nnodes", str(nodes), "--master-addr", HEAD, "--master-port", str(RENDEZVOUS_PORT))
    others = [(*joined, "--node-rank", str(node), "--headless") for node in range(1, nodes)]
    return _by_node([(*joined, "--node-rank", "0"), *others])


def _by_node(commands: Sequence[Sequence[str]]) -> str:
    """Return the command of each node, which its comment names."""
    lines = (f"# on node {node} of {len(commands)}\n{shlex.join(words)}" for node, words in enumerate(commands))
    return "\n".join(lines)
