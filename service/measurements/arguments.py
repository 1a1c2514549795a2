"""What a start-up was told: the arguments that an engine prints, and the command that started it.

A command is read as argparse reads it: words with underscores are flags too, a beginning that only one flag has stands
for that flag, a switch takes no value, and a model may stand behind the flags.

Sources:
    vLLM 0.33 `utils/argparse_utils.py` (`FlexibleArgumentParser`: underscores become dashes); Python's `argparse`
    (`allow_abbrev`, `BooleanOptionalAction`: a switch is denied by `no-`).
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from service.catalog.engine_flags import flags_of
from service.catalog.measurement_rows import Setting
from service.engine.engines.sglang import AITER_CONTEXT, AITER_PART
from service.engine.inputs import EngineName
from service.measurements.drafted import drafts_in
from service.measurements.folded import goes_on
from service.measurements.observed import Doubt, Observed, UnreadableTextError
from service.measurements.patterns import MOST_CHARACTERS, setting

# Settings as engines print their arguments: 'name': value, or name=value.
ARGUMENTS: Final = re.compile(
    r"non-default args|args: Namespace\(|EngineArgs\(|with config: |server_args=|ServerArgs\(|\bLLM\(|vllm serve |"
    r"sglang\.launch_server|sglang serve |trtllm-serve |-m vllm\.entrypoints"
)
NAMED: Final = re.compile(r"\b(\w+)(?:=|[\"']: ?)('[^']{1,200}'|\"[^\"]{1,200}\"|[\w.\-/]{1,200})")
WITHOUT_LORA: Final = re.compile(r"\benable_lora(?:=|[\"']: ?)(?:False|None)")
# vLLM `config/lora.py`: one adapter where none are counted; SGLang counts otherwise, by a flag of its own.
WITH_LORA: Final = re.compile(
    r"^(?!.*(?i:sglang|server_?args)).*(?:\benable_lora(?:=|[\"']: ?)True|--enable[-_]lora\b(?!=))"
)
# No item of any kind in a prompt is what `language_model_only` stands for: vLLM 0.33 `config/multimodal.py`.
LIMITS: Final = re.compile(r"limit_mm_per_prompt(?:=|[\"']: ?)\{([^{}]{1,200})\}")
LIMIT: Final = re.compile(r": ?(\d{1,6})")
MOST_PARTS: Final = 60  # lines of one command
ESCAPED: Final = "\\"  # the end of a line that goes on
OF_LORA: Final = ("max_loras", "max_lora_rank")  # printed with their defaults where no adapter is served
FLAG: Final = re.compile(r"(?<!without )(?<!without `)--([a-z][a-z0-9_-]{1,60}+)|(?<!\S)-([tpd]p)(?=[ =])")
WORD: Final = re.compile(r"[^\s\\]{1,200}")
SWITCHES: Final = frozenset(
    {
        "enable_expert_parallel", "enforce_eager", "enable_prefix_caching", "language_model_only",
        "disable_radix_cache", "enable_dp_attention", "async_scheduling", "disable_overlap_schedule",
    }
)  # fmt: skip
DENIED: Final = "no_"
# Other switches, which a model may follow.
VALUELESS: Final = re.compile(r"(?:enable|disable|no|trust|async|headless)(?:_|$)")
PLACE: Final = re.compile(r"[~./]*[\w.\-]+(?:/[\w.\-]+)+")  # a model's name or folder, not a word of a sentence
SERVED: Final = re.compile(r"(?:vllm serve|sglang serve|trtllm-serve(?: serve)?) (?!-|serve )([^\s\\]{1,200})")
FIELDS: Final[Mapping[str, str]] = {
    "model": "model", "model_path": "model", "model_tag": "model",
    "tensor_parallel_size": "tensor_parallel_size", "tp_size": "tensor_parallel_size", "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size", "dp": "data_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size", "pp_size": "pipeline_parallel_size",
    "data_parallel_size": "data_parallel_size", "dp_size": "data_parallel_size",
    "enable_expert_parallel": "expert_parallel", "ep_size": "expert_ranks", "enable_dp_attention": "shares_experts",
    "decode_context_parallel_size": "decode_context_parallel_size",
    "enforce_eager": "enforce_eager", "enable_prefix_caching": "enable_prefix_caching",
    "disable_radix_cache": "forgets_prefixes", "language_model_only": "language_model_only",
    "max_loras": "max_loras", "max_lora_rank": "max_lora_rank", "num_speculative_tokens": "num_speculative_tokens",
    "max_model_len": "max_model_len", "max_seq_len": "max_model_len", "context_length": "max_model_len",
    "gpu_memory_utilization": "gpu_memory_utilization", "mem_fraction_static": "gpu_memory_utilization",
    "max_num_batched_tokens": "max_num_batched_tokens", "chunked_prefill_size": "max_num_batched_tokens",
    "cpu_offload_gb": "offloaded_gib", "all2all_backend": "exchange", "moe_a2a_backend": "exchange",
    "async_scheduling": "plans_ahead", "disable_overlap_schedule": "plans_in_turn",
    "disable_overlap_scheduler": "plans_in_turn",
    "kv_cache_memory_bytes": "kv_cache_memory_bytes", "speculative_algorithm": "draft_algorithm",
    "speculative_num_draft_tokens": "verified_tokens", "speculative_num_steps": "draft_steps",
    "max_num_seqs": "max_num_seqs", "max_running_requests": "max_num_seqs",
    "max_batch_size": "max_num_seqs", "max_num_tokens": "max_num_batched_tokens",
    "kv_cache_free_gpu_memory_fraction": "gpu_memory_utilization",
    "kv_cache_dtype": "kv_cache_dtype", "quantization": "weight_format", "block_size": "block_size",
    "page_size": "block_size", "swa_full_tokens_ratio": "swa_full_tokens_ratio",
    "mamba_cache_dtype": "mamba_cache_dtype", "mamba_ssm_cache_dtype": "mamba_ssm_cache_dtype",
}  # fmt: skip
# A share that SGLang prints once it has set AITER's buffers aside: up to 0.5.18 `server_args.py` (`__post_init__`).
SET_ASIDE: Final = re.compile(r"ServerArgs\(.*\battention_backend='aiter'")
UNSAID: Final = ("None", "auto", "", None)
# What one server states alike wherever it prints a line of the same kind.
ONES_OWN: Final = ("model", "tensor_parallel_size", "pipeline_parallel_size", "max_model_len")

# What an engine decides after it printed its arguments, and says as it decided in its own configuration.
CONFIGURATION: Final = "with config: "
DECIDED: Final = "enable_prefix_caching"
TOLD: Final = ("model", "tensor_parallel_size", "pipeline_parallel_size")  # and in lines of all kinds
OF_HUB: Final = re.compile(r"[\w-][\w.-]*/[\w.-]+")


def keep_arguments(observed: Observed, engine: EngineName, lines: Sequence[tuple[int, str]]) -> None:
    """Keep the settings of every line that prints arguments or starts a server.

    Raises:
        UnreadableTextError: two lines of a kind are of two servers.
    """
    before: dict[tuple[str, str], tuple[Setting, int]] = {}
    stated = observed.settings.get("engine_version")
    known = flags_of(engine, stated if isinstance(stated, str) else None)
    flags = sorted(flag.removeprefix("--").replace("-", "_") for flag in known)
    for place, line in whole_commands(lines):
        kind = ARGUMENTS.search(line[:2000])
        if kind is not None:
            _arguments(observed, _stated(line[:MOST_CHARACTERS], flags), place, kind[0], before)


def whole_commands(lines: Sequence[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Yield lines, those that a shell reads as one as one, and those of arguments that are folded, where they begin."""
    begun, parts = 0, list[str]()
    for place, line in lines:
        is_escaped = bool(parts) and parts[-1].endswith(ESCAPED)
        if parts and (len(parts) == MOST_PARTS or not (is_escaped or goes_on("".join(parts), line))):
            yield begun, "".join(parts).removesuffix(ESCAPED)
            parts = []
        elif is_escaped:
            parts[-1] = parts[-1].removesuffix(ESCAPED) + " "
        begun = begun if parts else place
        parts.append(line.rstrip())
    if parts:
        yield begun, "".join(parts).removesuffix(ESCAPED)


def _arguments(
    observed: Observed,
    stated: Mapping[str, Setting],
    place: int,
    kind: str,
    before: dict[tuple[str, str], tuple[Setting, int]],
) -> None:
    """Keep the settings of a line that prints arguments; where two name a field, the first one says it.

    Whether prefixes are kept is as the engine decided: vLLM 0.13 `model_executor/models/config.py`
    (`MambaModelConfig`: none are of a hybrid model that cannot, whatever its arguments say).

    Raises:
        UnreadableTextError: an earlier line of the same kind is of another server.
    """
    for field, value in stated.items():
        said = before.setdefault((kind, field), (value, place)) if field in ONES_OWN else (value, place)
        if said[0] != value:
            sentence = f"{field} is {value!r:.80}, and line {said[1]} says {said[0]!r:.80}"
            raise UnreadableTextError(place, sentence, "the log of one start-up")
        if field not in observed.settings:
            observed.state(field, value, place)
        elif field == DECIDED and kind == CONFIGURATION:
            observed.settings[field], observed.setting_lines[field] = value, place
        elif field in TOLD and _is_another(observed.settings[field], value):
            _tell_other(observed, field, value, place)


def _is_another(before: Setting, value: Setting) -> bool:
    """Return whether two lines mean another thing: a model's folder may be called as its owner is not.

    >>> _is_another("Qwen/Qwen3-8B", "/models/qwen3-8b"), _is_another("Qwen/Qwen3-8B", "Qwen/Qwen3-32B")
    (False, True)
    """
    names = [each for each in (before, value) if isinstance(each, str)]
    if not names:
        return before != value
    return all(OF_HUB.fullmatch(each) for each in names) and len({each.split("/")[-1].lower() for each in names}) > 1


def _tell_other(observed: Observed, field: str, value: Setting, place: int) -> None:
    """Say once that a line of another kind states a setting otherwise than the one that was read."""
    if not any(f" says {field} " in doubt.sentence for doubt in observed.doubts):
        read = f"line {observed.setting_lines[field]} {observed.settings[field]!r:.80}, which was read"
        sentence = f"line {place} says {field} {value!r:.80}, and {read}: state {field} if it is the other one"
        observed.doubts.append(Doubt(sentence=sentence, fields=()))


def _stated(line: str, flags: Sequence[str]) -> dict[str, Setting]:
    """Return the fields that a line states; nothing, or less than nothing, leaves it to the engine."""
    served = [("model", name) for name in SERVED.findall(line)]
    pairs = [*NAMED.findall(line), *served, *_flagged(line, flags)]
    fields: dict[str, Setting] = {}
    for name, text in pairs:
        field, value = FIELDS.get(name), setting(text)
        if field is not None and value not in UNSAID and not (isinstance(value, int) and value < 0):
            fields.setdefault(field, value)
    if WITHOUT_LORA.search(line):
        fields = {field: value for field, value in fields.items() if field not in OF_LORA}
    elif WITH_LORA.search(line):
        fields.setdefault("max_loras", 1)
    limits = LIMITS.search(line)
    if limits is not None and not any(int(limit) for limit in LIMIT.findall(limits[1])):
        fields["language_model_only"] = True
    if SET_ASIDE.search(line):
        fields |= _share_as_stated(fields)
    return fields | drafts_in(line)


def _share_as_stated(fields: Mapping[str, Setting]) -> dict[str, Setting]:
    """Return the share of which AITER's buffers were set aside, unless the context is too short for them.

    >>> _share_as_stated({"gpu_memory_utilization": 0.7225}), _share_as_stated({})
    ({'gpu_memory_utilization': 0.85}, {})
    """
    share, context = fields.get("gpu_memory_utilization"), fields.get("max_model_len")
    is_short = isinstance(context, int) and context <= AITER_CONTEXT
    if not isinstance(share, float) or is_short or share > AITER_PART:
        return {}
    return {"gpu_memory_utilization": round(share / AITER_PART, 6)}


def _flagged(line: str, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what the flags of a command say, and at last the model that stands behind them."""
    marks = list(FLAG.finditer(line))
    behind: list[str] = []
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(line)], strict=False):
        name = _whole((mark[1] or mark[2]).replace("-", "_"), flags)
        follows = line[mark.end() : end]
        words = WORD.findall(follows.removeprefix("="))
        has_own = follows.startswith("=")
        if not follows.startswith(("=", " ")) and follows:
            words = []  # a quotation of a sentence, or of a list, ends here
        if name.removeprefix(DENIED) in SWITCHES and not (has_own or words[:1] in (["true"], ["false"])):
            yield name.removeprefix(DENIED), str(not name.startswith(DENIED))
            behind += words[:1]
        elif VALUELESS.match(name) and not has_own:
            behind += words[:1]
        elif words:
            yield name, words[0]
            behind += words[1:2] if has_own or name in FIELDS else []
    yield from (("model", word) for word in behind[:1] if PLACE.fullmatch(word))


def _whole(name: str, flags: Sequence[str]) -> str:
    """Return the name of a flag that a command may state by its beginning alone.

    >>> _whole("tensor_parallel", ["model", "tensor_parallel_size"])
    'tensor_parallel_size'
    """
    place = bisect_left(flags, name)
    begun = [flag for flag in flags[place : place + 2] if flag.startswith(name)]
    return begun[0] if len(begun) == 1 and name not in FIELDS else name
