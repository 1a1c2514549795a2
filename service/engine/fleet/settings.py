"""Every value the caller left open, resolved once, and named in the answer with its origin."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from service.engine.engines.device import Device, device_of
from service.engine.engines.rules import EngineRules, batch_defaults, default_utilization
from service.engine.errors import InvalidQuestionError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.questions import SettingsWish
from service.engine.fleet.results import Assumption, Origin, Scalar
from service.engine.fleet.starts import check_start, check_weight_format, needs_float16, own_cache_dtype
from service.engine.formats.quantization import standard_quantization
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype, SpeculativeMethod, WeightFormat
from service.engine.memory.drafts import check_drafts, default_method

Number = TypeVar("Number", int, float)

DRAFT_SOURCES: dict[SpeculativeMethod, str] = {
    "mtp": "the checkpoint's own prediction modules: their weights and caches count",
    "eagle": "one more layer with the model's heads: its weights and cache count",
    "eagle3": "one more layer with the model's heads and an output head of 32,000 tokens: its weights and cache count",
    "ngram": "drafts are looked up in the text itself: no weights and no cache",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """Settings without a gap, the checkpoint that is loaded, and where each value came from."""

    settings: EngineSettings
    checkpoint: Checkpoint
    kv_cache_dtype: KvCacheDtype  # what "auto" means here
    shorten_to_fit: bool
    assumptions: tuple[Assumption, ...]


def resolve(model: ModelFacts, gpu: Gpu, wish: SettingsWish, rules: EngineRules, context_tokens: int = 0) -> Resolved:
    """Return the engine's settings with every default filled in and listed.

    Args:
        model: the model.
        gpu: the GPU type.
        wish: what the caller stated.
        rules: the engine version's defaults.
        context_tokens: input and output of one request of the asked load. [tokens]

    Raises:
        InvalidQuestionError: `max_model_len` exceeds what the model accepts, or requests exceed either.
    """
    device = device_of(gpu, rules)
    check_weight_format(gpu, device, wish.weight_format)
    checkpoint, format_assumption = _checkpoint(model, wish, in_float16=needs_float16(model.architecture, gpu, device))
    max_num_batched_tokens, max_num_seqs = batch_defaults(rules, gpu)
    utilization = default_utilization(rules, gpu)
    longest = model.architecture.max_position_embeddings
    if wish.max_model_len is not None and wish.max_model_len > longest:
        raise InvalidQuestionError(
            f"max_model_len {wish.max_model_len} is longer than the {longest} tokens of the model's config",
            field="max_model_len",
            accepted=f"1 to {longest}",
        )
    if context_tokens > (wish.max_model_len or longest):
        field = "input_tokens" if wish.max_model_len is None else "max_model_len"
        raise InvalidQuestionError(
            f"a request of {context_tokens} tokens, input and output, exceeds the {wish.max_model_len or longest} "
            + ("tokens the model accepts" if wish.max_model_len is None else "tokens of max_model_len"),
            field=field,
            accepted=f"input_tokens + output_tokens of at most {wish.max_model_len or longest}",
        )
    notes = [
        _note("gpu_memory_utilization", wish.gpu_memory_utilization, utilization, rules),
        _note("max_num_batched_tokens", wish.max_num_batched_tokens, max_num_batched_tokens, rules),
        _note("max_num_seqs", wish.max_num_seqs, max_num_seqs, rules),
    ]
    kv_cache_dtype, kv_note = _kv_cache_dtype(model, checkpoint, wish, device)
    method, draft_notes = resolved_drafts(model, wish)
    settings = EngineSettings(
        gpu_memory_utilization=_or(wish.gpu_memory_utilization, utilization),
        kv_cache_dtype=kv_cache_dtype,
        is_checkpoints_cache_dtype=checkpoint.kv_cache_dtype == kv_cache_dtype,
        max_model_len=_or(wish.max_model_len, model.architecture.default_max_model_len),
        max_num_batched_tokens=_or(wish.max_num_batched_tokens, max_num_batched_tokens),
        max_num_seqs=_or(wish.max_num_seqs, max_num_seqs),
        block_size=wish.block_size,
        kv_cache_memory_bytes=wish.kv_cache_memory_bytes,
        num_speculative_tokens=wish.num_speculative_tokens,
        speculative_method=method,
        max_loras=wish.max_loras,
        max_lora_rank=wish.max_lora_rank,
    )
    check_start(model, checkpoint, device, settings, wish.kv_cache_dtype)
    return Resolved(
        settings=settings,
        checkpoint=checkpoint,
        kv_cache_dtype=kv_cache_dtype,
        shorten_to_fit=wish.max_model_len is None,
        assumptions=(
            format_assumption,
            kv_note,
            *notes,
            *draft_notes,
        ),
    )


def with_max_num_seqs(resolved: Resolved, cap: int) -> Resolved:
    """Return settings with a cap on running requests that Sizer chose, and the note that says so."""
    own = resolved.settings.max_num_seqs
    chosen = Assumption(
        name="max_num_seqs",
        value=cap,
        origin="default",
        source=f"chosen: batches of so many keep tpot_s, and further requests wait; the engine's own cap is {own}",
    )
    return replace(
        resolved,
        settings=replace(resolved.settings, max_num_seqs=cap),
        assumptions=tuple(chosen if it.name == "max_num_seqs" else it for it in resolved.assumptions),
    )


def _checkpoint(model: ModelFacts, wish: SettingsWish, *, in_float16: bool) -> tuple[Checkpoint, Assumption]:
    """Return the checkpoint of the wished format, the model's own, or the format's standard recipe."""
    own = next(it for it in model.checkpoints if it.is_default)
    if wish.weight_format is None and own.weight_format == "bf16" and in_float16:
        source = "the GPU has no bfloat16, and the engine falls back to float16"
        return _standard_checkpoint("fp16"), Assumption(
            name="weight_format", value="fp16", origin="default", source=source
        )
    if wish.weight_format is None:
        return own, Assumption(name="weight_format", value=own.weight_format, origin="catalog", source=own.source)
    published = [it for it in model.checkpoints if it.weight_format == wish.weight_format]
    if published:
        return published[0], Assumption(
            name="weight_format", value=wish.weight_format, origin="request", source=published[0].source
        )
    recipe = _standard_checkpoint(wish.weight_format)
    return recipe, Assumption(name="weight_format", value=wish.weight_format, origin="request", source=recipe.source)


@lru_cache(maxsize=1024)
def _standard_checkpoint(weight_format: WeightFormat) -> Checkpoint:
    """Return the format's standard recipe for a model without a published checkpoint in it."""
    return Checkpoint(
        weight_format=weight_format,
        quantization=standard_quantization(weight_format),
        hf_id=None,
        is_default=False,
        kv_cache_dtype=None,
        source="no checkpoint of this format is in the catalog; sized by the format's standard recipe",
    )


def _kv_cache_dtype(
    model: ModelFacts, checkpoint: Checkpoint, wish: SettingsWish, device: Device
) -> tuple[KvCacheDtype, Assumption]:
    """Return what the cache stores: the wish, what the checkpoint declares, or the model's own dtype."""
    if wish.kv_cache_dtype not in (None, "auto"):
        return wish.kv_cache_dtype, Assumption(
            name="kv_cache_dtype", value=wish.kv_cache_dtype, origin="request", source=None
        )
    if checkpoint.kv_cache_dtype not in (None, "auto"):
        return checkpoint.kv_cache_dtype, Assumption(
            name="kv_cache_dtype", value=checkpoint.kv_cache_dtype, origin="catalog", source=checkpoint.source
        )
    dtype, source = own_cache_dtype(model.architecture, checkpoint, device)
    return dtype, Assumption(name="kv_cache_dtype", value=dtype, origin="default", source=source)


def resolved_drafts(model: ModelFacts, wish: SettingsWish) -> tuple[SpeculativeMethod | None, tuple[Assumption, ...]]:
    """Return who drafts: as stated, the checkpoint's own modules, or else an EAGLE-3 head; None without drafts."""
    if not wish.num_speculative_tokens:
        return None, ()
    method = wish.speculative_method or default_method(model.architecture)
    check_drafts(model.architecture, method, wish.num_speculative_tokens)
    origin: Origin = "request" if wish.speculative_method else "default"
    return method, (
        Assumption(name="num_speculative_tokens", value=wish.num_speculative_tokens, origin="request", source=None),
        Assumption(name="speculative_method", value=method, origin=origin, source=DRAFT_SOURCES[method]),
    )


def _or(value: Number | None, default: Number) -> Number:
    return default if value is None else value


def _note(name: str, value: Scalar, default: Scalar, rules: EngineRules) -> Assumption:
    if value is None:
        return Assumption(name=name, value=default, origin="default", source=rules.source)
    return Assumption(name=name, value=value, origin="request", source=None)
