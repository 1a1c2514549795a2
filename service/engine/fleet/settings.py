"""Every value the caller left open, resolved once, and named in the answer with its origin."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import ceil, exp, log
from typing import Final, TypeVar

from service.engine.arithmetic import round_up
from service.engine.derived import derived
from service.engine.engines.device import Device, device_of
from service.engine.engines.rules import EngineRules, default_utilization
from service.engine.facts import Checkpoint, ModelFacts, as_stored, text_alone_source, text_only
from service.engine.fleet.batches import settled_batches
from service.engine.fleet.cache_dtypes import chooses_fp8, declared_cache_dtype, own_cache_dtype
from service.engine.fleet.checkpoints import loaded_checkpoint
from service.engine.fleet.contexts import check_lengths, longest_context, unasked_context
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption, Origin
from service.engine.fleet.starts import (
    caches_prefixes,
    check_prefix_caching,
    check_start,
    check_state_dtypes,
    check_text_only,
)
from service.engine.fleet.wide import chosen_share
from service.engine.inputs import EngineSettings, Gpu, KvCacheDtype, Load, SpeculativeMethod
from service.engine.memory.drafts import check_drafts, default_method
from service.engine.memory.kernels import own_page_size

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
    output_tokens: int = 0,
) -> Resolved:
    """Return the engine's settings with every default filled in and listed.

    Args:
        model: the model.
        gpu: the GPU type.
        stated: what the caller stated.
        rules: the engine version's defaults.
        context_tokens: input and output of one request of the asked load. [tokens]
        longest_tokens: of the longest request; 0 where nobody tells lengths. [tokens]
        output_tokens: of context_tokens, by which a refusal names the longer part. [tokens]

    Raises:
        InvalidQuestionError: `max_model_len` exceeds what the model accepts, or requests exceed either.
    """
    served = served_tokens(model, stated, rules, context_tokens, longest_tokens, output_tokens)
    return _resolved(model, gpu, stated, rules, served)


def served_tokens(
    model: ModelFacts,
    stated: StatedSettings,
    rules: EngineRules,
    context_tokens: int,
    longest_tokens: int,
    output_tokens: int = 0,
) -> int:
    """Return the context to serve, as stated or for the longest request, as of `resolve`. [tokens].

    Raises:
        InvalidQuestionError: `max_model_len` exceeds what the model accepts, or requests exceed either.
    """
    check_lengths(longest_context(model.architecture, rules), stated.max_model_len, context_tokens, output_tokens)
    return stated.max_model_len or _served_tokens(model, rules, longest_tokens)


@derived(128)
def _resolved(model: ModelFacts, gpu: Gpu, stated: StatedSettings, rules: EngineRules, max_model_len: int) -> Resolved:
    """Return the same for a context to serve; but for that it does not depend on lengths. [tokens]."""
    resolved = _of_any_length(model, gpu, stated, rules)
    return replace(resolved, settings=replace(resolved.settings, max_model_len=max_model_len))


@derived(128)
def _of_any_length(model: ModelFacts, gpu: Gpu, stated: StatedSettings, rules: EngineRules) -> Resolved:
    """Return the same with the model's own context, which no check asks about."""
    device = device_of(gpu, rules)
    served = _served(model, stated, device)
    checkpoint, format_note = loaded_checkpoint(served, gpu, device, stated)
    if checkpoint.architecture is not None:
        served = as_stored(served, checkpoint)
    kv_cache_dtype, kv_note = _kv_cache_dtype(served, checkpoint, stated, device)
    settings, notes = _settings(served, gpu, stated, rules)
    settings = replace(
        settings,
        kv_cache_dtype=kv_cache_dtype,
        is_checkpoints_cache_dtype=checkpoint.kv_cache_dtype == kv_cache_dtype
        or (kv_cache_dtype == "fp8" and chooses_fp8(model.architecture, device, is_fp8=True)),
    )
    check_start(served, checkpoint, device, settings, stated.kv_cache_dtype)
    check_state_dtypes(served.architecture, device, settings)
    return Resolved(
        model=served,
        gpu=gpu,
        rules=rules,
        stated=stated,
        settings=settings,
        checkpoint=checkpoint,
        kv_cache_dtype=kv_cache_dtype,
        shorten_to_fit=stated.max_model_len is None,
        assumptions=(format_note, kv_note, *notes),
    )


def _served(model: ModelFacts, stated: StatedSettings, device: Device) -> ModelFacts:
    """Return what is loaded of a model: all of it, or no towers for images and sound."""
    if not stated.language_model_only:
        return model
    check_text_only(device)
    return text_only(model)


def _settings(
    model: ModelFacts, gpu: Gpu, stated: StatedSettings, rules: EngineRules
) -> tuple[EngineSettings, tuple[Assumption, ...]]:
    """Return the engine's settings but for the dtype of its cache, and where each came from."""
    utilization, utilization_note = chosen_share(stated) or _settled(
        "gpu_memory_utilization", stated.gpu_memory_utilization, lambda: default_utilization(rules, gpu), rules
    )
    batched_tokens, seqs, batch_notes = settled_batches(model, gpu, stated, rules)
    method, draft_notes = resolved_drafts(model, stated)
    keeps_prefixes, prefix_notes = _prefix_caching(model, stated, rules, device_of(gpu, rules))
    settings = EngineSettings(
        gpu_memory_utilization=utilization,
        is_share_open=utilization_note.origin == "default" and rules.static_reserve is not None,
        kv_cache_dtype="auto",
        max_model_len=unasked_context(model.architecture, rules),
        max_num_batched_tokens=batched_tokens,
        max_num_seqs=seqs,
        block_size=stated.block_size,
        kv_cache_memory_bytes=stated.kv_cache_memory_bytes,
        enable_prefix_caching=keeps_prefixes,
        enforce_eager=stated.enforce_eager,
        num_speculative_tokens=stated.num_speculative_tokens,
        speculative_method=method,
        max_loras=stated.max_loras,
        max_lora_rank=stated.max_lora_rank,
        swa_full_tokens_ratio=stated.swa_full_tokens_ratio,
        states_per_request=rules.states_per_request,
        caps_windows=rules.plan.caps_windows,
        page_size=own_page_size(model.architecture, device_of(gpu, rules)),
        counts_stated_drafts=rules.plan.counts_stated_drafts,
        pads_states=rules.plan.pads_states,
        compressed_pools=rules.plan.compressed_pools,
        stage_rule=rules.plan.stage_rule,
        mamba_cache_dtype=stated.mamba_cache_dtype,
        mamba_ssm_cache_dtype=stated.mamba_ssm_cache_dtype,
    )
    notes = (utilization_note, *batch_notes, *prefix_notes, *_switches(model, stated), *draft_notes)
    return settings, notes


def _prefix_caching(
    model: ModelFacts, stated: StatedSettings, rules: EngineRules, device: Device
) -> tuple[bool, tuple[Assumption, ...]]:
    """Return whether the engine keeps prefixes, as stated or by itself; named where states make it matter."""
    name, asked = "enable_prefix_caching", stated.enable_prefix_caching
    check_prefix_caching(model.architecture, device, asked)
    if asked is not None:
        return asked, (Assumption(name=name, value=asked, origin="request", source=None),)
    own = caches_prefixes(model.architecture, device)
    has_states = any(mixer.is_recurrent for mixer in model.architecture.mixers)
    notes = (Assumption(name=name, value=own, origin="default", source=rules.source),) if has_states else ()
    return own, notes


def _switches(model: ModelFacts, stated: StatedSettings) -> Iterator[Assumption]:
    """Yield what was turned on."""
    if stated.enforce_eager:
        yield Assumption(name="enforce_eager", value=True, origin="request", source=None)
    if stated.language_model_only:
        source = text_alone_source(model)
        yield Assumption(name="language_model_only", value=True, origin="request", source=source)
    dtypes = {"mamba_cache_dtype": stated.mamba_cache_dtype, "mamba_ssm_cache_dtype": stated.mamba_ssm_cache_dtype}
    for name, dtype in dtypes.items():
        if dtype != "auto":
            yield Assumption(name=name, value=dtype, origin="request", source=None)


def longest_request(load: Load, context_tokens: int) -> int:
    """Return the longest request of a load, or one that a thousand others are shorter than. [tokens].

    uniform:     mean x (1 + half width)
    log-normal:  exp(mu + 3.1 sigma),  sigma^2 = ln(1 + variation^2),  mu = ln(mean) - sigma^2 / 2

    Of a normal variable 0.99903 lie below 3.1 deviations (NIST/SEMATECH e-Handbook, 1.3.6.7.1):

    >>> from math import log
    >>> from statistics import NormalDist
    >>> load = Load(
    ...     concurrent_requests=1, request_rate_per_s=None, input_tokens=900, output_tokens=100,
    ...     length_distribution="lognormal", length_variation_fraction=1.0)
    >>> variance = log(2)
    >>> round(NormalDist(log(1_000) - variance / 2, variance**0.5).cdf(log(longest_request(load, 1_000))), 5)
    0.99903
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


def _served_tokens(model: ModelFacts, rules: EngineRules, longest_tokens: int) -> int:
    """Return the context to serve: of the longest request with a margin, else the model's own. [tokens]."""
    if not longest_tokens:
        return unasked_context(model.architecture, rules)
    with_margin = round_up(ceil(MODEL_LEN_MARGIN * longest_tokens), MODEL_LEN_STEP)
    return min(with_margin, longest_context(model.architecture, rules))


def _kv_cache_dtype(
    model: ModelFacts, checkpoint: Checkpoint, stated: StatedSettings, device: Device
) -> tuple[KvCacheDtype, Assumption]:
    """Return what the cache stores: as stated, as the checkpoint declares, or the model's own dtype."""
    name = "kv_cache_dtype"
    if stated.kv_cache_dtype not in (None, "auto"):
        return stated.kv_cache_dtype, Assumption(name=name, value=stated.kv_cache_dtype, origin="request", source=None)
    declared = declared_cache_dtype(checkpoint, device)
    if declared is not None:
        return declared, Assumption(name=name, value=declared, origin="catalog", source=checkpoint.source)
    dtype, source = own_cache_dtype(model.architecture, checkpoint, device)
    return dtype, Assumption(name=name, value=dtype, origin="default", source=source)


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
