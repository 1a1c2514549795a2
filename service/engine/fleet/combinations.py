"""What a recommendation chooses from: every GPU with every weight format and cache dtype in question."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from service.engine.fleet.questions import Offer, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.inputs import Gpu, KvCacheDtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One GPU with the settings of one weight format and cache dtype."""

    gpu: Gpu
    settings: StatedSettings


def combinations(question: RecommendQuestion) -> Iterator[Combination]:
    """Yield what is in question; without a list of formats, those of the model's own checkpoints."""
    stated = question.settings
    named = stated.quantization or stated.weight_format
    formats = question.weight_formats or ((named,) if named else ())
    own = tuple(dict.fromkeys(each.weight_format for each in question.model.checkpoints))
    dtypes: tuple[KvCacheDtype | None, ...] = question.kv_cache_dtypes or (stated.kv_cache_dtype,)
    for gpu in question.gpus:
        for weight_format in formats or own:
            for dtype in dtypes:
                yield Combination(gpu=gpu, settings=replace(stated, weight_format=weight_format, kv_cache_dtype=dtype))


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
        timers=question.timers,
    )


def allowed_offers(question: RecommendQuestion, gpu: Gpu) -> list[Offer]:
    """Return a GPU's offers from the providers and regions in question."""
    return [
        offer
        for offer in question.offers
        if offer.gpu == gpu.id
        and (not question.providers or offer.provider in question.providers)
        and (not question.regions or offer.region in question.regions)
    ]


def cheapest_gpu_usd_per_hour(question: RecommendQuestion, gpu: Gpu) -> float:
    """Return the lowest price of one such GPU; infinite where nobody in question offers any."""
    return min((offer.usd_per_hour / offer.gpu_count for offer in allowed_offers(question, gpu)), default=inf)
