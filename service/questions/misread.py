"""What a reader of fields found wrong, in this service's words: the field, what is wrong, what would be accepted."""

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from service.catalog.faults import MOST_SENTENCE_SHOWN, accepted_by, sentence_of
from service.questions.neighbours import close_names, right_name, taken_elsewhere, unit_told, written_here
from service.questions.parts.part import CONTRADICTION
from service.questions.refusals import MOST_FAULTS, MOST_NAME_SHOWN, Fault, RefusalError

THOSE_ABOVE: Final = "one of the names above"
OF_MANY: Final = ("questions", "requests", "items", "rows", "batch")
MANY: Final = "many questions at once go to a path with :batch, as /size:batch"
INSIDE_A_WORKLOAD: Final = "question"
BARE: Final = "its fields as they are, at the top; PUT /workloads/{name} keeps a question inside `question`"
AT_THE_TOP: Final = "the fields inside it as they are, at the top"
OF_FLAGS: Final = (
    "engine_args", "extra_args", "extra_engine_args", "vllm_args", "sglang_args", "server_args", "args", "flags",
)  # fmt: skip
EACH_FLAG: Final = "each flag as a field of its own: --max-num-seqs 64 is max_num_seqs=64"
OF_EXCHANGES: Final = (
    "deepep_mode", "enable_eplb", "ep_num_redundant_experts", "enable_single_batch_overlap",
)  # fmt: skip
OWN_EXCHANGE: Final = (
    "none: all2all_backend=deepep is sized with experts balanced, one on each GPU kept twice, in either mode"
)
ONE_TYPE: Final = "gpu for one type, gpu_count of /capacity for how many of it; several types are for /recommend"
# What a question has no field for, and what is to be done instead.
INSTEAD: Final[Mapping[str, str]] = {
    INSIDE_A_WORKLOAD: BARE, "gpus": ONE_TYPE, **dict.fromkeys(OF_MANY, MANY), **dict.fromkeys(OF_FLAGS, EACH_FLAG),
    **dict.fromkeys(OF_EXCHANGES, OWN_EXCHANGE),
}  # fmt: skip
OF_A_SCALER: Final = frozenset(
    (
        "replicas", "min_replicas", "max_replicas", "current_replicas", "replicas_now", "ready_replicas",
        "running_replicas", "desired_replicas",
    )
)  # fmt: skip
RUN_NOW: Final = "no such field: the answer says how many, however many run now or may; a scaler has bounds of its own"
OF_MONEY: Final = frozenset(("currency", "fx", "exchange_rate", "price_currency"))
DOLLARS: Final = "every price, asked and answered, is in US dollars"
IN_DOLLARS: Final = f"no such field: {DOLLARS}"
PERCENTILE: Final = "percentile"
OF_A_QUESTION: Final = "input_tokens"  # every question takes it, and no list of entries
UNNAMED_COLUMN: Final = "column "  # and its number: how a sheet's cell beyond the names is called
MODEL: Final = "model"
PASTED: Final = "model_config"
INSIDE: Final = 'the whole config as model_config, by POST: {"model_config": {"architectures": [...], ...}, ...}'
# What nearly every config.json states, and no question has a field like.
IN_EVERY_CONFIG: Final = """
    architectures model_type hidden_size num_hidden_layers num_attention_heads num_key_value_heads intermediate_size
    vocab_size
"""
# What it may state as well; alone some of these are names of other tools for fields of a question.
IN_SOME_CONFIGS: Final = """
    head_dim max_position_embeddings torch_dtype dtype tie_word_embeddings rms_norm_eps hidden_act rope_scaling
    rope_parameters rope_theta sliding_window quantization_config text_config vision_config auto_map
    transformers_version bos_token_id eos_token_id pad_token_id initializer_range use_cache attention_bias
    attention_dropout mlp_bias
"""
ONLY_OF_A_CONFIG: Final = frozenset(IN_EVERY_CONFIG.split())
OF_A_CONFIG: Final = ONLY_OF_A_CONFIG | frozenset(IN_SOME_CONFIGS.split())
# What is chosen where nobody states it, and what people write when they mean that.
CHOSEN_NAMES: Final = """
    tensor_parallel_size pipeline_parallel_size data_parallel_size decode_context_parallel_size expert_parallel
    max_model_len max_num_seqs max_num_batched_tokens block_size gpu_memory_utilization kv_cache_memory_bytes gpu_count
    weight_format
"""
CHOSEN: Final = frozenset(CHOSEN_NAMES.split())
LEFT_OPEN: Final = frozenset(("auto", "default", "none", "null", "any", "-1"))
# Of fields with such a name, what values say that no choice means, and what is to be done.
MEANT_OTHERWISE: Final = (
    ("weight_format", re.compile(r"gguf|\bi?q[2-8]_"), "GGUF is llama.cpp's, and no engine here loads it"),
    (
        "request_rate",
        re.compile(r"(?:/|per) ?(?:d(?:ay)?|w(?:eek)?|month|mo)$|daily"),
        "of a day, the rate of its busiest hour: 86400 in a day is 1 on average",
    ),
    ("tpot_s", re.compile(r"tok|tps"), "seconds for each token: 20 tokens a second are 0.05"),
    ("usd", re.compile(r"[€£¥₹]|\b(?:eur|gbp|jpy|cny|inr|chf|cad|aud)\b"), DOLLARS),
    ("weight_format", re.compile(r"fp4"), "of fp4 there are two: NVIDIA's nvfp4, and mxfp4"),
)
NAMELESS: Final = '""'  # a field whose name has no letter
SOURCES: Final = frozenset({"body", "query", "path", "header"})  # of a request; the first part of a location


def misread(
    errors: Iterable[Mapping[str, Any]], known: Sequence[str], *, misnamed: Iterable[Fault] = ()
) -> RefusalError:
    """Return the refusal of fields that break their rules, without repeating what was sent.

    Misspelt names come first, then fields in their order, and last what is like no name there is.

    Args:
        errors: what Pydantic found, as `ValidationError.errors()` lists it.
        known: the names that would have been read, to suggest from.
        misnamed: faults of fields that are read, and name what the catalog does not have.
    """
    order = {name: place for place, name in enumerate(known)}
    told: list[Fault] = []
    every = ", ".join(known)
    lists = (every, THOSE_ABOVE)
    errors, of_a_config = _without_config(tuple(errors), known)
    for error in islice(errors, MOST_FAULTS):
        told.append(_fault(error, known, every))
        if told[-1].accepted == every:
            every = THOSE_ABOVE
    told.extend([of_a_config] if of_a_config else [])
    at_fault = {fault.field for fault in told}
    told.extend(fault for fault in misnamed if fault.field in order and fault.field not in at_fault)
    told.sort(key=lambda fault: order.get(fault.field.split(".")[0], -1 if fault.accepted not in lists else len(order)))
    names = ", ".join(dict.fromkeys(fault.field for fault in told))
    if len(names) > MOST_SENTENCE_SHOWN:
        names = f"{names[:MOST_SENTENCE_SHOWN].rpartition(', ')[0] or names[:MOST_NAME_SHOWN]}, ..."
    return RefusalError("invalid-request", f"not understood: {names}", *told)


def _fault(error: Mapping[str, Any], known: Sequence[str], every: str) -> Fault:
    path = error["loc"]
    location = [str(part) for part in (path[1:] if path and path[0] in SOURCES else path)]
    field = ".".join(location)[:MOST_NAME_SHOWN] or (NAMELESS if location else "body")
    kind = str(error["type"])
    if kind == "extra_forbidden":
        is_around = _is_around_fields(field, error.get("input"), known)
        return Fault(field, "unknown field", AT_THE_TOP) if is_around else unknown_field(field, known, every)
    if kind == "missing":
        return Fault(field, "missing", "a JSON object" if field == "body" else "a value; the field is required")
    if kind == CONTRADICTION:
        return Fault(error["ctx"]["field"], str(error["msg"])[:MOST_SENTENCE_SHOWN], error["ctx"]["accepted"])
    if field == "body" and isinstance(error.get("input"), list):
        return Fault(field, sentence_of(error), f"a JSON object; {MANY}")
    if len(location) > 1 and location[-1].isdigit():  # of a list, which a query string has no places in
        return Fault(
            ".".join(location[:-1])[:MOST_NAME_SHOWN],
            f"value {int(location[-1]) + 1}: {sentence_of(error)}",
            _accepted(error),
        )
    return Fault(field, sentence_of(error), _accepted(error))


def _is_around_fields(field: str, value: object, known: Sequence[str]) -> bool:
    """Return whether an object under a name like no field's holds fields of a question, as `load` or `limits` may."""
    if not isinstance(value, dict) or field in INSTEAD or right_name(field, frozenset(known)) is not None:
        return False
    inside = (str(name)[:MOST_NAME_SHOWN] for name in islice(value, MOST_FAULTS))
    return any(name not in OF_A_CONFIG and right_name(name, frozenset(known)) for name in inside)


def _without_config(
    errors: Sequence[Mapping[str, Any]], known: Sequence[str]
) -> tuple[Sequence[Mapping[str, Any]], Fault | None]:
    """Return errors but those of a config that was pasted among a question's own fields, and one fault for them all."""
    strangers = {str(error["loc"][-1]) for error in errors if error["type"] == "extra_forbidden"}
    if PASTED not in known or not strangers & ONLY_OF_A_CONFIG:
        return errors, None
    own = [
        error
        for error in errors
        if str(error["loc"][-1]) not in (OF_A_CONFIG & strangers)
        and (error.get("ctx") or {}).get("field") != MODEL  # that neither is stated
    ]
    named = ", ".join(sorted(strangers & OF_A_CONFIG))
    return own, Fault(PASTED, f"fields of a model's config stand beside the question's: {named}", INSIDE)


def _accepted(error: Mapping[str, Any]) -> str | None:
    """Return what would be accepted; of shares and percentiles, as most people write them, too."""
    accepted, context = accepted_by(error), error.get("ctx") or {}
    name, written = _written(error)
    if accepted and name in CHOSEN and written in LEFT_OPEN:
        return f"{accepted}; or leave it out, and it is chosen"
    for part, meant, told in MEANT_OTHERWISE:
        if accepted and part in name and meant.search(written):
            return f"{accepted}; {told}"
    most = context.get("le", context.get("lt"))
    is_share = str(error["type"]).startswith("less_than") and (most == 1 or name.endswith("_fraction"))
    if accepted and error["loc"][-1:] == (PERCENTILE,) and str(error["type"]).startswith("greater_than"):
        return f"{accepted}; the 95th is 95, or p95"
    return f"{accepted}; 90 % is 0.9" if accepted and is_share else accepted


def _written(error: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field at fault, and what was written there in lower case; nothing of what is no short text, but -1."""
    name, value = "".join(map(str, error["loc"][-1:])), error.get("input")
    if isinstance(value, str):
        return name, value.lower() if len(value) <= MOST_NAME_SHOWN else ""
    return name, "-1" if value == -1 else ""


def unknown_field(field: str, known: Sequence[str], every: str) -> Fault:
    """Return the fault of a name that nobody reads, with the names close to it, or else `every` name there is."""
    if field in known:
        return Fault(field, "not in a query string", "a JSON body, by POST")
    if field.startswith(UNNAMED_COLUMN):
        return Fault(
            field, "a cell under no name", 'as many cells as names; a list in one of them in quotes: "aws,gcp"'
        )
    if OF_A_QUESTION in known and field in INSTEAD:
        return Fault(field, "unknown field", INSTEAD[field])
    if written_here(field) in OF_A_SCALER:
        return Fault(field, "unknown field", RUN_NOW)
    if written_here(field) in OF_MONEY:
        return Fault(field, "unknown field", IN_DOLLARS)
    right = right_name(field, frozenset(known))
    if right is not None:
        return Fault(field, "unknown field", f"did you mean {right}?{unit_told(field)}")
    elsewhere = taken_elsewhere(field) if OF_A_QUESTION in known else None
    if elsewhere is not None:
        return Fault(field, "unknown field", elsewhere)
    close = close_names(field, known)
    if close:
        return Fault(field, "unknown field", f"did you mean {' or '.join(close)}?{unit_told(field)}")
    return Fault(field, "unknown field", every or None)
