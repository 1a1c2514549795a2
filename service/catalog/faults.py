"""What a reader of fields found wrong, in this service's words; a library's own never leave it."""

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

MOST_SENTENCE_SHOWN: Final = 300
SIMPLE_KINDS: Final[Mapping[str, str]] = {
    "finite_number": "a finite number",
    "int_parsing": "a whole number such as 1000",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing_size": "a whole number",
    "float_parsing": "a number such as 0.5",
    "float_type": "a number",
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "string_type": "text",
    "string_unicode": "text in UTF-8",
    "list_type": "a list of texts, or one text with commas",
    "tuple_type": "a list",
    "dict_type": "a JSON object",
    "model_attributes_type": "a JSON object",
    "model_type": "a JSON object",
    "date_from_datetime_parsing": "a date such as 2026-11-22",
    "date_parsing": "a date such as 2026-11-22",
    "date_type": "a date such as 2026-11-22",
}
LIMIT_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("less than", "lt"),
    "less_than_equal": ("at most", "le"),
    "string_pattern_mismatch": ("text matching", "pattern"),
    "literal_error": ("", "expected"),
    "too_long": ("a list of at most", "max_length"),
}
# What patterns ask for, in words.
PATTERNS: Final[Mapping[str, str]] = {
    r"^[^\x00-\x1f\x7f]*$": "text on one line, without control characters",
    r"^https?://[^\s\x00-\x1f]+$": "an address without blanks, such as https://example.com/pricing",
    r"^[0-9]{1,2}\.[0-9]$": "a compute capability such as 9.0",
    "^[a-z0-9_]+$": "lower-case letters, digits and underscores, such as h100_sxm",
    "^[a-z0-9-]+$": "lower-case letters, digits and hyphens, such as on-demand",
    "^[A-Za-z0-9][A-Za-z0-9._-]*$": "letters, digits, points, hyphens and underscores, such as us-east-1",
    "^[A-Za-z0-9_.:/-]+$": "letters, digits, underscores, points, colons, slashes and hyphens, such as team/chat",
    "^[a-z0-9][a-z0-9._-]*$": "lower-case letters, digits, points, hyphens and underscores, such as h100-sxm-80gb",
    "^[a-z0-9_.]+$": "the path of one value, such as cost.usd_per_hour",
    "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)?$": "an id such as meta-llama/Llama-3.1-8B, no address",
}
OWN_WORDS: Final = frozenset({"value_error", "assertion_error"})  # what a rule of this service says itself


def sentence_of(error: Mapping[str, Any]) -> str:
    """Return what is wrong with a field, as Pydantic lists it: the words of its own rule as they are.

    >>> sentence_of({"type": "int_parsing", "msg": "Input should be a valid integer, unable to parse string"})
    'should be a whole number such as 1000'
    >>> sentence_of({"type": "missing", "msg": "Field required"})
    'missing'
    """
    kind = str(error["type"])
    if kind in OWN_WORDS:
        return str(error["msg"]).removeprefix("Value error, ")[:MOST_SENTENCE_SHOWN]
    if kind in ("missing", "extra_forbidden"):
        return "missing" if kind == "missing" else "unknown field"
    accepted = accepted_by(error)
    return f"should be {accepted}" if accepted else "not accepted"


def accepted_by(error: Mapping[str, Any]) -> str | None:
    """Return what a field accepts, from the rule it broke; None where the rule does not say."""
    kind, context = str(error["type"]), error.get("ctx") or {}
    if kind == "string_pattern_mismatch" and context.get("pattern") in PATTERNS:
        return PATTERNS[context["pattern"]]
    if kind in LIMIT_KINDS:
        words, key = LIMIT_KINDS[kind]
        return f"{words} {context.get(key)}".strip()
    if kind == "string_too_long":
        return f"at most {context.get('max_length')} characters"
    if kind == "string_too_short":
        return f"text of at least {context.get('min_length')} character"
    if kind == "too_short":
        return f"a list of at least {context.get('min_length')}"
    if kind == "value_error" and "accepted: " in str(error["msg"]):
        return str(error["msg"]).split("accepted: ", 1)[1][:MOST_SENTENCE_SHOWN]
    return SIMPLE_KINDS.get(kind)


def told(error: ValidationError) -> list[str]:
    """Return every field at fault with what is wrong."""
    listed = error.errors(include_input=False, include_url=False)
    return [f"{'.'.join(map(str, fault['loc']))}: {sentence_of(fault)}" for fault in listed]
