"""How many tokens one step takes and how many requests run at once, as stated, or as the engine's version has it.

    max_num_seqs x tokens of each <= max_num_batched_tokens

where the engine asks for it: a request that runs takes a token of every step, and with adapters its drafts too. An
engine that is told neither cuts its own number of requests down to its tokens; told both, it does not start.

Source:
    vLLM 0.33 `config/scheduler.py` (`SchedulerConfig`: "max_num_batched_tokens must be greater than or equal to
    max_num_seqs"), `engine/arg_utils.py` (`min(max_num_seqs, max_num_batched_tokens)`; "Consider increasing
    max_num_batched_tokens or decreasing num_speculative_tokens", where adapters and drafts are on, since 0.12),
    `config/vllm.py` (`num_lookahead_tokens`; "does not have enough slots to schedule a token", of drafts since 0.33).
"""

from typing import Final

from service.engine.engines.device import device_of
from service.engine.engines.rules import EngineRules, batch_defaults
from service.engine.errors import InvalidQuestionError
from service.engine.facts import ModelFacts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption
from service.engine.fleet.wide import SENT_WHY, most_running
from service.engine.inputs import EngineSettings, Gpu
from service.engine.memory.activation import fewest_batched_tokens

CUT_WHY: Final = "no more than max_num_batched_tokens has room for, as the engine asks for; its own is {own}"
RAISED_WHY: Final = "room for max_num_seqs, as the engine asks for; its own is {own}"


def settled_batches(
    model: ModelFacts, gpu: Gpu, stated: StatedSettings, rules: EngineRules
) -> tuple[int, int, tuple[Assumption, ...]]:
    """Return `max_num_batched_tokens`, `max_num_seqs`, and where each came from.

    Raises:
        InvalidQuestionError: more requests are stated than tokens, or no more tokens than one request has drafts, with
            which the engine does not start.
    """
    own_tokens, own_seqs = batch_defaults(rules, gpu)
    own_seqs = rules.serving_engine.own_requests(own_seqs, compresses_past=model.architecture.compresses_past)
    sent = None if stated.all2all_backend is None else min(own_seqs, most_running(stated, gpu))
    own_seqs = sent or own_seqs
    # The engine raises its own number to that of an image (vLLM 0.33 `_get_min_mm_batched_tokens`).
    own_tokens = max(own_tokens, fewest_batched_tokens(model.architecture, device_of(gpu, rules)))
    asked, each = stated.max_num_seqs or own_seqs, tokens_of_each(stated, rules)
    tokens = stated.max_num_batched_tokens or own_tokens
    seqs = running_beside(tokens // each, asked, rules)
    if stated.max_num_seqs is not None and seqs < asked:
        if stated.max_num_batched_tokens is not None:
            raise _contradiction(tokens, asked, each, rules)
        tokens, seqs = asked * each, asked
    if rules.plan.drafts_of_one_fit and stated.speculative_method != "ngram":
        _check_drafts(tokens, stated.num_speculative_tokens, rules)
    notes = (
        _note("max_num_batched_tokens", tokens, stated.max_num_batched_tokens, own_tokens, RAISED_WHY, rules),
        _note("max_num_seqs", seqs, stated.max_num_seqs, own_seqs, CUT_WHY, rules)
        if sent is None or seqs != sent or stated.max_num_seqs is not None
        else Assumption(name="max_num_seqs", value=seqs, origin="chosen", source=SENT_WHY),
    )
    return tokens, seqs, notes


def _check_drafts(tokens: int, drafts: int, rules: EngineRules) -> None:
    """Raise InvalidQuestionError if a step has no more tokens than layers draft for one request."""
    if drafts and tokens <= drafts:
        raise InvalidQuestionError(
            f"{rules.engine} does not start with max_num_batched_tokens {tokens} where {drafts} are drafted a request",
            field="max_num_batched_tokens",
            accepted=f"at least {drafts + 1}, or fewer num_speculative_tokens",
        )


def tokens_of_each(settings: EngineSettings | StatedSettings, rules: EngineRules) -> int:
    """Return the tokens of a step that the engine wants room for, of each request that may run. [tokens]."""
    holds_drafts = settings.max_loras and rules.plan.drafts_for_adapters_fit
    return 1 + settings.num_speculative_tokens if holds_drafts else 1


def running_beside(slots: int, seqs: int, rules: EngineRules) -> int:
    """Return how many of some requests the engine lets run beside steps with room for so many."""
    if seqs <= slots:
        return seqs
    most = rules.serving_engine.command_line.most_sequences(max(slots, 1), None)
    return seqs if most is None else min(seqs, most)


def _contradiction(tokens: int, seqs: int, each: int, rules: EngineRules) -> InvalidQuestionError:
    drafts = "" if each == 1 else f" has room for with adapters, {each} tokens each with its drafts"
    return InvalidQuestionError(
        f"{rules.engine} does not start with more max_num_seqs ({seqs}) than max_num_batched_tokens ({tokens}){drafts}",
        field="max_num_seqs",
        accepted=f"at most {tokens // each}, or max_num_batched_tokens of at least {seqs * each}",
    )


def _note(name: str, value: int, stated: int | None, own: int, why: str, rules: EngineRules) -> Assumption:
    if stated is not None:
        return Assumption(name=name, value=value, origin="request", source=None)
    if value != own:
        return Assumption(name=name, value=value, origin="chosen", source=why.format(own=own))
    return Assumption(name=name, value=value, origin="default", source=rules.source)
