"""Every value the caller left open, resolved once, and named in the answer with its origin."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import ceil, exp, log
from typing import Final, TypeVar, get_args

from service.engine.arithmetic import round_up
from service.engine.engines.rules import EngineRules, batch_defaults, default_utilization
from service.engine.errors import InvalidQuestionError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption, Origin
from service.engine.formats.quantization import standard_quantization
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype, Load, SpeculativeMethod, WeightFormat
from service.engine.memory.drafts import check_drafts, default_method

Number = TypeVar("Number", int, float)

DRAFT_SOURCES: Final[Mapping[SpeculativeMethod, str]] = {
    "mtp": "the checkpoint's own prediction modules: their weights and caches count",
    "eagle": "one more layer with the model's heads: its weights and cache count",
    "eagle3": "one more layer with the model's heads and an output head of 32,000 tokens: its weights and cache count",
    "ngram": "drafts are looked up in the text itself: no weights and no cache",
}
# The longest context served, where requests are known: the longest of them with this margin, in such steps [tokens].
MODEL_LEN_MARGIN: Final = 1.25
MODEL_LEN_STEP: Final = 256
RARE_DEVIATIONS: Final = 3.1  # standard deviations that one request in a thousand exceeds
KV_DTYPE_OF_MODEL: Final[Mapping[str, KvCacheDtype]] = {"bfloat16": "bf16", "float16": "fp16"}
# Of each format, for models without a published checkpoint in it.
STANDARD_CHECKPOINTS: Final[Mapping[WeightFormat, Checkpoint]] = {
    weight_format: Checkpoint(
        weight_format=weight_format,
        quantization=standard_quantization(weight_format),
        hf_id=None,
        is_default=False,
        kv_cache_dtype=None,
        source="no checkpoint of this format is in the catalog; sized by the format's standard recipe",
    )
    for weight_format in get_args(WeightFormat)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What is deployed, but for its layout: settings without a gap, and where each value came from."""

    model: ModelFacts
    gpu: Gpu
    rules: EngineRules
    stated: StatedSettings
    settings: EngineSettings
    checkpoint: Checkpoint
    kv_cache_dtype: KvCacheDtype  # what "auto" means here
    shorten_to_fit: bool
    assumptions: tuple[Assumption, ...]


def resolve(
    model: ModelFacts,
    gpu: Gpu,
    stated: StatedSettings,
    rules: EngineRules,
    context_tokens: int = 0,
    longest_tokens: int = 0,
) -> Resolved:
    """Return the engine's settings with every default filled in and listed.

    Args:
        model: the model.
        gpu: the GPU type.
        stated: what the caller stated.
        rules: the engine version's defaults.
        context_tokens: input and output of one request of the asked load. [tokens]
        longest_tokens: of the longest request; 0 where nobody tells lengths. [tokens]

    Raises:
        InvalidQuestionError: `max_model_len` exceeds what the model accepts, or requests exceed either.
    """
    _check_lengths(model, stated, context_tokens)
    checkpoint, format_note = _checkpoint(model, stated)
    kv_cache_dtype, kv_note = _kv_cache_dtype(model, checkpoint, stated)
    method, draft_notes = resolved_drafts(model, stated)
    utilization, utilization_note = _settled(
        "gpu_memory_utilization", stated.gpu_memory_utilization, lambda: default_utilization(rules, gpu), rules
    )
    batched_tokens, batched_note = _settled(
        "max_num_batched_tokens", stated.max_num_batched_tokens, lambda: batch_defaults(rules, gpu)[0], rules
    )
    seqs, seqs_note = _settled("max_num_seqs", stated.max_num_seqs, lambda: batch_defaults(rules, gpu)[1], rules)
    return Resolved(
        model=model,
        gpu=gpu,
        rules=rules,
        stated=stated,
        settings=EngineSettings(
            gpu_memory_utilization=utilization,
            kv_cache_dtype=kv_cache_dtype,
            is_checkpoints_cache_dtype=checkpoint.kv_cache_dtype == kv_cache_dtype,
            max_model_len=stated.max_model_len or _served_tokens(model, longest_tokens),
            max_num_batched_tokens=batched_tokens,
            max_num_seqs=seqs,
            block_size=stated.block_size,
            kv_cache_memory_bytes=stated.kv_cache_memory_bytes,
            num_speculative_tokens=stated.num_speculative_tokens,
            speculative_method=method,
            max_loras=stated.max_loras,
            max_lora_rank=stated.max_lora_rank,
        ),
        checkpoint=checkpoint,
        kv_cache_dtype=kv_cache_dtype,
        shorten_to_fit=stated.max_model_len is None,
        assumptions=(format_note, kv_note, utilization_note, batched_note, seqs_note, *draft_notes),
    )


def longest_request(load: Load, context_tokens: int) -> int:
    """Return the longest request of a load, or one that a thousand others are shorter than. [tokens].

    uniform:     mean x (1 + half width)
    log-normal:  exp(mu + 3.1 sigma),  sigma^2 = ln(1 + variation^2),  mu = ln(mean) - sigma^2 / 2
    """
    variation = load.length_variation_fraction
    match load.length_distribution:
        case "fixed":
            return context_tokens
        case "uniform":
            return ceil(context_tokens * (1 + variation))
        case "lognormal":
            spread = log(1 + variation * variation)
            return max(ceil(context_tokens * exp(RARE_DEVIATIONS * spread**0.5 - spread / 2)), context_tokens)


def _served_tokens(model: ModelFacts, longest_tokens: int) -> int:
    """Return the context to serve: of the longest request with a margin, else the model's own. [tokens]."""
    if not longest_tokens:
        return model.architecture.default_max_model_len
    with_margin = round_up(ceil(MODEL_LEN_MARGIN * longest_tokens), MODEL_LEN_STEP)
    return min(with_margin, model.architecture.max_position_embeddings)


def _check_lengths(model: ModelFacts, stated: StatedSettings, context_tokens: int) -> None:
    """Raise where the stated context is longer than the model's, or requests are longer than either."""
    longest = model.architecture.max_position_embeddings
    if stated.max_model_len is not None and stated.max_model_len > longest:
        raise InvalidQuestionError(
            f"max_model_len {stated.max_model_len} is longer than the {longest} tokens of the model's config",
            field="max_model_len",
            accepted=f"1 to {longest}",
        )
    most = stated.max_model_len or longest
    if context_tokens > most:
        is_models = stated.max_model_len is None
        raise InvalidQuestionError(
            f"a request of {context_tokens} tokens, input and output, exceeds the {most} "
            + ("tokens the model accepts" if is_models else "tokens of max_model_len"),
            field="input_tokens" if is_models else "max_model_len",
            accepted=f"input_tokens + output_tokens of at most {most}",
        )


def _checkpoint(model: ModelFacts, stated: StatedSettings) -> tuple[Checkpoint, Assumption]:
    """Return the checkpoint of the stated format, the model's own, or the format's standard recipe."""
    if stated.weight_format is None:
        own = own_checkpoint(model)
        return own, Assumption(name="weight_format", value=own.weight_format, origin="catalog", source=own.source)
    published = [each for each in model.checkpoints if each.weight_format == stated.weight_format]
    loaded = published[0] if published else STANDARD_CHECKPOINTS[stated.weight_format]
    return loaded, Assumption(name="weight_format", value=stated.weight_format, origin="request", source=loaded.source)


def own_checkpoint(model: ModelFacts) -> Checkpoint:
    """Return the checkpoint that a model is loaded from when nobody states a format."""
    return next(each for each in model.checkpoints if each.is_default)


def _kv_cache_dtype(
    model: ModelFacts, checkpoint: Checkpoint, stated: StatedSettings
) -> tuple[KvCacheDtype, Assumption]:
    """Return what the cache stores: as stated, as the checkpoint declares, or the model's own dtype."""
    name = "kv_cache_dtype"
    if stated.kv_cache_dtype not in (None, "auto"):
        return stated.kv_cache_dtype, Assumption(name=name, value=stated.kv_cache_dtype, origin="request", source=None)
    if checkpoint.kv_cache_dtype not in (None, "auto"):
        return checkpoint.kv_cache_dtype, Assumption(
            name=name, value=checkpoint.kv_cache_dtype, origin="catalog", source=checkpoint.source
        )
    dtype = KV_DTYPE_OF_MODEL.get(model.architecture.dtype, "bf16")
    return dtype, Assumption(name=name, value=dtype, origin="default", source="auto: the model's dtype")


def resolved_drafts(
    model: ModelFacts, stated: StatedSettings
) -> tuple[SpeculativeMethod | None, tuple[Assumption, ...]]:
    """Return who drafts: as stated, the checkpoint's own modules, or else an EAGLE-3 head; None without drafts."""
    if not stated.num_speculative_tokens:
        return None, ()
    method = stated.speculative_method or default_method(model.architecture)
    check_drafts(model.architecture, method, stated.num_speculative_tokens)
    origin: Origin = "request" if stated.speculative_method else "default"
    return method, (
        Assumption(name="num_speculative_tokens", value=stated.num_speculative_tokens, origin="request", source=None),
        Assumption(name="speculative_method", value=method, origin=origin, source=DRAFT_SOURCES[method]),
    )


def _settled(
    name: str, stated: Number | None, default: Callable[[], Number], rules: EngineRules
) -> tuple[Number, Assumption]:
    """Return a setting as stated, else the engine version's default, and where it came from."""
    if stated is not None:
        return stated, Assumption(name=name, value=stated, origin="request", source=None)
    value = default()
    return value, Assumption(name=name, value=value, origin="default", source=rules.source)
