"""Tokens that were drafted while something was measured: how many of a step were kept, and how likely each was.

    tokens of a step = 1 + kept drafts = (1 - a^(k + 1)) / (1 - a), of which k drafts and the chance a of each follow

What tools call an acceptance rate is kept drafts over drafts, which is less than a: a draft behind a refused one is not
kept either.

Sources:
    vLLM 0.33 `benchmarks/serve.py` (`SpecDecodeMetrics`, `spec_decode_acceptance_length`), `v1/spec_decode/metrics.py`;
    SGLang 0.5.23 `benchmark/serving.py` (`accept_length`), `managers/scheduler_metrics_mixin.py` (the token that the
    model adds is counted), `server_args.py` (one of `speculative_num_draft_tokens` is the model's own).
"""

import re
from collections.abc import Mapping
from typing import Any, Final, get_args

from service.catalog.measurement_rows import Setting
from service.engine.inputs import SpeculativeMethod
from service.engine.time.drafting import tokens_per_step
from service.measurements.keeping import number_in, state
from service.measurements.observed import Doubt, Observed
from service.measurements.pools import OF_ROOM
from service.questions.refusals import Fault, RefusalError

KEPT: Final = "tokens_per_step"  # as a text says it: no field of a question
DRAFTED: Final = "num_speculative_tokens"
METHOD_FIELD: Final = "speculative_method"
KNOWN: Final = get_args(SpeculativeMethod)
CHANCE: Final = "speculative_acceptance_fraction"
ROUNDED: Final = 0.02  # that a mean of drafts is off a whole number, where every step drafts as many
HALVINGS: Final = 40
POSITION: Final = re.compile(r"Position \d{1,2}")
# Who drafts, as SGLang calls it; `EAGLE` is a head of its own or the model's own modules, as the model has them.
ALGORITHMS: Final[Mapping[str, str | None]] = {"EAGLE": None, "EAGLE3": "eagle3", "NEXTN": "mtp", "NGRAM": "ngram"}

CONFIG: Final = re.compile(r"SpeculativeConfig\(method='(\w{1,40})'.{0,300}?num_spec_tokens=(\d{1,3})\b")
# The same as JSON or as Python's dictionary, as commands and arguments state it.
STATED: Final = re.compile(r"speculative[_-]config\W{1,4}\{([^{}]{1,400})\}")
METHOD: Final = re.compile(r"[\"']method[\"']: ?[\"'](\w{1,40})[\"']")
TOKENS: Final = re.compile(r"[\"']num_speculative_tokens[\"']: ?(\d{1,3})\b")

OF_BOTH: Final = ("weight_bytes", "kv_cache_bytes")  # which answers count with the drafter; SGLang tells each apart


def drafts_in(line: str) -> dict[str, Setting]:
    """Return who drafts, and how many tokens, as a line of arguments states it.

    >>> drafts_in("speculative_config={'method': 'deepseek_mtp', 'num_speculative_tokens': 2}")
    {'speculative_method': 'mtp', 'num_speculative_tokens': 2}
    """
    printed, stated = CONFIG.search(line), STATED.search(line)
    inside = stated[1] if stated else ""
    method = printed or METHOD.search(inside)
    tokens = printed[2] if printed else (match[1] if (match := TOKENS.search(inside)) else None)
    drafts: dict[str, Setting] = {}
    if method is not None:
        drafts["speculative_method"] = "mtp" if method[1].endswith("mtp") else method[1]
    if tokens is not None:
        drafts["num_speculative_tokens"] = int(tokens)
    return drafts


def doubt_drafter(observed: Observed) -> None:
    """Doubt what a GPU holds where tokens are drafted in a way that no answer counts, which is not compared."""
    method = observed.settings.get(METHOD_FIELD)
    if method is None or str(method) in KNOWN:
        return
    line = observed.setting_lines.get(METHOD_FIELD, 1)
    for field in (METHOD_FIELD, DRAFTED):
        observed.settings.pop(field, None)
        observed.setting_lines.pop(field, None)
    sentence = (
        f"line {line} says that {method!s:.40} drafts, which no answer counts: neither weights nor the cache are "
    )
    observed.doubts.append(Doubt(sentence=f"{sentence}compared", fields=(METHOD_FIELD,), figures=OF_ROOM))


def keep_drafts(observed: Observed, kept: object, per_step: float, line: int = 1) -> None:
    """Keep the tokens of a step, and the drafts of one where they are as many in each.

    Args:
        observed: what they were observed of.
        kept: tokens that came of a step, the model's own among them; nothing where none were drafted. [tokens]
        per_step: drafted tokens over drafts; 0 where it is not told. [tokens]
        line: that says it.
    """
    if number_in(kept) < 1:
        return
    state(observed, KEPT, kept, line)
    if per_step >= 1 and abs(per_step - round(per_step)) <= ROUNDED:
        state(observed, DRAFTED, round(per_step), line)


def keep_counted(observed: Observed, document: Mapping[str, Any]) -> None:
    """Keep what vLLM's result counts, as JSON."""
    places = document.get("spec_decode_per_position_acceptance_rates")
    drafts = number_in(document.get("spec_decode_num_drafts"))
    per_step = number_in(document.get("spec_decode_draft_tokens")) / drafts if drafts else 0.0
    per_step = float(len(places)) if isinstance(places, list) and places else per_step
    keep_drafts(observed, document.get("spec_decode_acceptance_length"), per_step)


def keep_printed(observed: Observed, values: Mapping[str, tuple[str, int]]) -> None:
    """Keep what a printed result says: labels with what stands beside them, and their lines."""
    told = {label: float(text.replace(",", "")) for label, (text, _) in values.items() if text[:1].isdigit()}
    label = next((label for label in ("Acceptance length", "Accept length") if label in told), None)
    if label is None:
        return
    drafts = told.get("Drafts", 0.0)
    places = sum(1 for each in told if POSITION.fullmatch(each))
    per_step = float(places) or (told.get("Draft tokens", 0.0) / drafts if drafts else 0.0)
    keep_drafts(observed, told[label], per_step, values[label][1])


def settle_drafts(observed: Observed) -> None:
    """Bring what SGLang prints of drafts into fields of a question."""
    said = {name: observed.settings.pop(name, None) for name in ("draft_algorithm", "verified_tokens", "draft_steps")}
    lines = {name: observed.setting_lines.pop(name, 1) for name in said}
    algorithm, verified, steps = said.values()
    if not isinstance(algorithm, str):
        return
    method = ALGORITHMS.get(algorithm.upper(), algorithm.lower())
    drafted = verified - 1 if isinstance(verified, int) else steps
    if method is not None:
        observed.state("speculative_method", method, lines["draft_algorithm"])
    if isinstance(drafted, int) and drafted > 0 and DRAFTED not in observed.settings:
        observed.state(DRAFTED, drafted, lines["draft_algorithm"])
    for name in OF_BOTH:
        observed.figures.pop(name, None)


def with_chance(asked: Mapping[str, Setting], observed: Observed) -> dict[str, Setting]:
    """Return a question with the chance of a draft that explains the tokens of a step.

    Raises:
        RefusalError: the text does not say how many were drafted, or more were kept than that.
    """
    kept, drafted = observed.settings.get(KEPT), asked.get(DRAFTED)
    if not isinstance(kept, int | float) or CHANCE in asked:
        return dict(asked)
    if drafted is None:
        detail = f"the text says that {kept:g} tokens came of each step, and not how many were drafted"
        raise RefusalError("invalid-request", detail, Fault(f"question.{DRAFTED}", detail, "it"))
    if not str(drafted).isdigit() or not int(drafted):
        return {name: value for name, value in asked.items() if name != "speculative_method"}
    if kept > int(drafted) + 1:
        detail = f"line {observed.setting_lines[KEPT]} says that {kept:g} tokens came of each step, which is more than "
        detail += f"{drafted} drafts and the model's own"
        raise RefusalError("invalid-request", detail, Fault(f"question.{DRAFTED}", detail, f"at least {kept - 1:g}"))
    return {**asked, CHANCE: round(chance(float(kept), int(drafted)), 4)}


def chance(kept: float, drafted: int) -> float:
    """Return the chance that a drafted token is kept, alike for each, that makes so many tokens of a step. [fraction].

    >>> round(chance(1.5, 1), 3), round(chance(2.84, 3), 3), chance(1.0, 4)
    (0.5, 0.775, 0.0)
    """
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if tokens_per_step(drafted, middle) < kept else (low, middle)
    return low
