"""What a reader of fields found wrong, in this service's words: the field, what is wrong, what would be accepted."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from rapidfuzz import fuzz, process

from service.questions.neighbours import right_name, written_here
from service.questions.parts.part import CONTRADICTION
from service.questions.refusals import MOST_FAULTS, MOST_NAME_SHOWN, Fault, RefusalError

MOST_SENTENCE_SHOWN: Final = 300
CLOSE_FIELD_SCORE: Final = 70
SOURCES: Final = frozenset({"body", "query", "path", "header"})  # of a request; the first part of a location

SIMPLE_KINDS: Mapping[str, str] = {
    "finite_number": "a finite number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_parsing": "a number",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "list_type": "a list of texts, or one text with commas",
    "dict_type": "a JSON object",
    "model_attributes_type": "a JSON object",
    "model_type": "a JSON object",
}
OWN_WORDS: Final = frozenset({"value_error", "assertion_error", CONTRADICTION})
LIMIT_KINDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "string_pattern_mismatch": ("text matching", "pattern"),
    "literal_error": ("", "expected"),
    "too_long": ("a list of at most", "max_length"),
}


def misread(errors: Iterable[Mapping[str, Any]], known: Sequence[str]) -> RefusalError:
    """Return the refusal of fields that break their rules, in the fields' order, without repeating what was sent.

    Args:
        errors: what Pydantic found, as `ValidationError.errors()` lists it.
        known: the names that would have been read, to suggest from.
    """
    order = {name: place for place, name in enumerate(known)}
    told: list[Fault] = []
    every = ", ".join(known)
    for error in islice(errors, MOST_FAULTS):
        told.append(_fault(error, known, every))
        if told[-1].accepted == every:
            every = "one of the names above"
    told.sort(key=lambda fault: order.get(fault.field.split(".")[0], len(order)))
    names = ", ".join(dict.fromkeys(fault.field for fault in told))
    if len(names) > MOST_SENTENCE_SHOWN:
        names = f"{names[:MOST_SENTENCE_SHOWN].rpartition(', ')[0] or names[:MOST_NAME_SHOWN]}, ..."
    return RefusalError("invalid-request", f"not understood: {names}", *told)


def _fault(error: Mapping[str, Any], known: Sequence[str], every: str) -> Fault:
    location = [str(part) for part in error["loc"] if part not in SOURCES]
    field = ".".join(location)[:MOST_NAME_SHOWN] or "body"
    kind = str(error["type"])
    if kind == "extra_forbidden":
        return unknown_field(field, known, every)
    if kind == "missing":
        return Fault(field, "missing", "a JSON object" if field == "body" else "a value; the field is required")
    if kind == CONTRADICTION:
        return Fault(error["ctx"]["field"], _sentence(error), error["ctx"]["accepted"])
    return Fault(field, _sentence(error), _accepted(error))


def unknown_field(field: str, known: Sequence[str], every: str) -> Fault:
    """Return the fault of a name that nobody reads, with the names close to it, or else `every` name there is."""
    if field in known:
        return Fault(field, "not in a query string", "a JSON body, by POST")
    right = right_name(field, frozenset(known))
    if right is not None:
        return Fault(field, "unknown field", f"did you mean {right}?")
    close = process.extract(written_here(field), known, scorer=fuzz.ratio, limit=2, score_cutoff=CLOSE_FIELD_SCORE)
    if close:
        return Fault(field, "unknown field", "did you mean " + " or ".join(name for name, _, _ in close) + "?")
    return Fault(field, "unknown field", every or None)


def _sentence(error: Mapping[str, Any]) -> str:
    """Return what is wrong, in this service's words: those of its own rules as they are, a library's never."""
    kind = str(error["type"])
    if kind in OWN_WORDS:
        return str(error["msg"]).removeprefix("Value error, ")[:MOST_SENTENCE_SHOWN]
    accepted = _accepted(error)
    return f"should be {accepted}" if accepted else "not accepted"


def _accepted(error: Mapping[str, Any]) -> str | None:
    """Return what a field accepts, from the rule it broke."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind in LIMIT_KINDS:
        words, key = LIMIT_KINDS[kind]
        return f"{words} {context.get(key)}".strip()
    if kind == "string_too_long":
        return f"at most {context.get('max_length')} characters"
    if kind == "string_too_short":
        return f"text of at least {context.get('min_length')} character"
    if kind == "value_error" and "accepted: " in str(error["msg"]):
        return str(error["msg"]).split("accepted: ", 1)[1][:MOST_SENTENCE_SHOWN]
    return SIMPLE_KINDS.get(kind)
