"""How many tokens one step takes and how many requests run at once, as stated, or as the engine's version has it.

    max_num_seqs <= max_num_batched_tokens

where the engine asks for it: a request that runs takes a token of every step. An engine that is told neither cuts
its own number of requests down to its tokens; told both, it does not start.

Source:
    vLLM 0.33 `config/scheduler.py` (`SchedulerConfig`: "max_num_batched_tokens must be greater than or equal to
    max_num_seqs"), `engine/arg_utils.py` (`min(max_num_seqs, max_num_batched_tokens)`).
"""

from typing import Final

from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules, batch_defaults
from service.engine.errors import InvalidQuestionError
from service.engine.facts import ModelFacts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption
from service.engine.inputs import Gpu
from service.engine.memory.activation import fewest_batched_tokens

CUT_WHY: Final = "no more than max_num_batched_tokens, as the engine asks for; its own is {own}"
RAISED_WHY: Final = "no fewer than max_num_seqs, as the engine asks for; its own is {own}"


def settled_batches(
    model: ModelFacts, gpu: Gpu, stated: StatedSettings, rules: EngineRules
) -> tuple[int, int, tuple[Assumption, ...]]:
    """Return `max_num_batched_tokens`, `max_num_seqs`, and where each came from.

    Raises:
        InvalidQuestionError: more requests are stated than tokens, with which the engine does not start.
    """
    own_tokens, own_seqs = batch_defaults(rules, gpu)
    # The engine raises its own number to that of an image (vLLM 0.33 `_get_min_mm_batched_tokens`).
    own_tokens = max(own_tokens, fewest_batched_tokens(model.architecture, device_of(gpu, rules)))
    asked = stated.max_num_seqs or own_seqs
    tokens = stated.max_num_batched_tokens or own_tokens
    seqs = running_beside(tokens, asked, rules)
    if stated.max_num_seqs is not None and seqs < asked:
        if stated.max_num_batched_tokens is not None:
            raise _contradiction(tokens, asked, rules)
        tokens = seqs = asked
    notes = (
        _note("max_num_batched_tokens", tokens, stated.max_num_batched_tokens, own_tokens, RAISED_WHY, rules),
        _note("max_num_seqs", seqs, stated.max_num_seqs, own_seqs, CUT_WHY, rules),
    )
    return tokens, seqs, notes


def running_beside(batched_tokens: int, seqs: int, rules: EngineRules) -> int:
    """Return how many of some requests the engine lets run beside steps of so many tokens."""
    if seqs <= batched_tokens:
        return seqs
    most = rules.serving_engine.command_line.most_sequences(batched_tokens, None)
    return seqs if most is None else min(seqs, most)


def _contradiction(tokens: int, seqs: int, rules: EngineRules) -> InvalidQuestionError:
    return InvalidQuestionError(
        f"{rules.engine} does not start with more max_num_seqs ({seqs}) than max_num_batched_tokens ({tokens})",
        field="max_num_seqs",
        accepted=f"at most {tokens}, or max_num_batched_tokens of at least {seqs}",
    )


def _note(name: str, value: int, stated: int | None, own: int, why: str, rules: EngineRules) -> Assumption:
    if stated is not None:
        return Assumption(name=name, value=value, origin="request", source=None)
    if value != own:
        return Assumption(name=name, value=value, origin="chosen", source=why.format(own=own))
    return Assumption(name=name, value=value, origin="default", source=rules.source)
