"""What shorter prompts, or prompts that are found in the cache, would save: what operators ask of users and of caches.

    memory binds     prompts capped at half their length
    latency binds    half of every prompt found in the prefix cache

One search each, where more than one GPU is taken, and only for what binds.
"""

from dataclasses import replace
from math import inf
from typing import Final

from service.engine.answers.levers import lever_of
from service.engine.answers.results import Lever
from service.engine.errors import EngineError
from service.engine.fleet.aims import NOTHING, aim_of
from service.engine.fleet.choice import better
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import SizeQuestion
from service.engine.fleet.results import BindingConstraint, Scalar
from service.engine.inputs import Load
from service.engine.time.carried import needs_time

SHORTEST_TOKENS: Final = 2_048  # of a prompt that is worth capping, or keeping
HIT_FRACTION: Final = 0.5
OF_MEMORY: Final = frozenset({"weights", "kv_cache", "max_num_seqs"})


def load_levers(question: SizeQuestion, chosen: Deployment, binds: BindingConstraint) -> tuple[Lever, ...]:
    """Return what another load would save, or make feasible; none where it saves nothing.

    Args:
        question: what was asked.
        chosen: its answer.
        binds: what forbids fewer GPUs.
    """
    change = _change(question, binds)
    if not change or chosen.gpus == 1 or question.disaggregated:
        return ()
    aim = aim_of("gpus", question.gpu, question.offers)
    now = aim.merit(chosen.layout, chosen.replicas) if chosen.is_feasible else NOTHING
    # As many GPUs, only cheaper, is no saving of the load's.
    beaten = (now[0], 0.0) if chosen.is_feasible else (inf, inf)
    try:
        then = better(replace(question, load=_changed(question.load, change)), beaten, aim)
    except EngineError:
        return ()
    basis = None if chosen.replica is None else chosen.replica.timing.basis.name
    return (lever_of(change, now, then, basis),) if then < beaten else ()


def _change(question: SizeQuestion, binds: BindingConstraint) -> dict[str, Scalar]:
    """Return the change of the load that eases what binds, by the names of a question."""
    load = question.load
    if load.input_tokens < SHORTEST_TOKENS:
        return {}
    if binds in OF_MEMORY:
        return {"input_tokens": load.input_tokens // 2}
    if needs_time(load, question.limits) and load.prefix_cache_hit_fraction < HIT_FRACTION:
        return {"prefix_cache_hit_fraction": HIT_FRACTION}
    return {}


def _changed(load: Load, change: dict[str, Scalar]) -> Load:
    tokens, fraction = change.get("input_tokens"), change.get("prefix_cache_hit_fraction")
    if isinstance(tokens, int):
        return replace(load, input_tokens=tokens)
    return replace(load, prefix_cache_hit_fraction=float(fraction)) if fraction is not None else load
