"""What a recommendation chooses from: every GPU with every weight format and cache dtype in question."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from sys import float_info

from service.engine.engines.device import device_of
from service.engine.engines.kernels import refuses_bfloat16
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.questions import Budget, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.fleet.shortlist import stays_in_server, usual_formats
from service.engine.inputs import Gpu, KvCacheDtype, WeightFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One GPU with the settings of one weight format and cache dtype."""

    gpu: Gpu
    settings: StatedSettings


def combinations(question: RecommendQuestion) -> Iterator[Combination]:
    """Yield what is in question; without a list of formats, those of the model's own checkpoints."""
    stated = question.settings
    formats = _named_formats(question)
    published = tuple(dict.fromkeys(each.weight_format for each in question.model.checkpoints))
    dtypes: tuple[KvCacheDtype | None, ...] = question.kv_cache_dtypes or (stated.kv_cache_dtype,)
    for gpu in question.gpus:
        if question.is_shortlist:
            own = tuple(usual_formats(question.model, gpu))
        else:
            own = tuple(dict.fromkeys(_as_loaded(question, gpu, each) for each in published))
        for weight_format in formats or own:
            for dtype in dtypes:
                yield Combination(gpu=gpu, settings=replace(stated, weight_format=weight_format, kv_cache_dtype=dtype))


def _as_loaded(question: RecommendQuestion, gpu: Gpu, weight_format: WeightFormat) -> WeightFormat:
    """Return what the engine makes of a format that nobody named: float16 of the model's own on a GPU that was named.

    Only there: nobody is sent to GPUs without bfloat16 who did not ask for them.
    """
    architecture = question.model.architecture
    is_own = weight_format == own_checkpoint(question.model).weight_format == "bf16"
    is_half = is_own and architecture.dtype == "bfloat16" and architecture.runs_in_float16
    return "fp16" if is_half and refuses_bfloat16(device_of(gpu, question.rules)) else weight_format


def _named_formats(question: RecommendQuestion) -> tuple[WeightFormat, ...]:
    named = question.settings.quantization or question.settings.weight_format
    return question.weight_formats or ((named,) if named else ())


def without_format(question: RecommendQuestion) -> Iterator[Gpu]:
    """Yield GPUs on which a list that names none considers no format of the model."""
    if question.is_shortlist and not _named_formats(question):
        yield from (gpu for gpu in question.gpus if not any(usual_formats(question.model, gpu)))


def formats_left_out(question: RecommendQuestion) -> tuple[WeightFormat, ...]:
    """Return the formats of the model that a list that names none does not consider on some of its GPUs."""
    if not question.is_shortlist or _named_formats(question):
        return ()
    usual = [set(usual_formats(question.model, gpu)) for gpu in question.gpus]
    published = dict.fromkeys(each.weight_format for each in question.model.checkpoints)
    return tuple(each for each in published if not all(each in formats for formats in usual))


def size_question(question: RecommendQuestion, combination: Combination) -> SizeQuestion:
    """Return the question how many GPUs one combination takes."""
    return SizeQuestion(
        model=question.model,
        gpu=combination.gpu,
        load=question.load,
        limits=question.limits,
        layout=question.layout,
        headroom=question.headroom,
        settings=combination.settings,
        rules=question.rules,
        flags=question.flags,
        offers=question.offers,
        left_out_offers=question.left_out_offers,
        timers=question.timers,
        stays_in_server=question.is_shortlist and stays_in_server(combination.gpu),
        budget=budget_of(question),
    )


def budget_of(question: RecommendQuestion) -> Budget:
    """Return what an option may take at most; a price that is needed is a finite one."""
    any_price = float_info.max if question.is_price_needed else inf
    return Budget(
        gpus=inf if question.max_gpus is None else question.max_gpus,
        usd_per_hour=any_price if question.max_usd_per_hour is None else question.max_usd_per_hour,
    )
