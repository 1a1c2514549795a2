"""What a recommendation chooses from: every GPU with every weight format and cache dtype in question."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from service.engine.fleet.questions import Offer, RecommendQuestion, SizeQuestion, StatedSettings
from service.engine.inputs import Gpu, KvCacheDtype, WeightFormat


@dataclass(frozen=True, slots=True, kw_only=True)
class Combination:
    """One GPU with the settings of one weight format and cache dtype."""

    gpu: Gpu
    settings: StatedSettings


def combinations(question: RecommendQuestion) -> Iterator[Combination]:
    """Yield what is in question; without a list of formats, those of the model's own checkpoints."""
    stated = question.settings
    formats = question.weight_formats or ((stated.weight_format,) if stated.weight_format else ())
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
        offers=tuple(allowed_offers(question, combination.gpu)),
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


def lacks_format(gpu: Gpu, weight_format: WeightFormat) -> bool:
    """Return whether the engine has no way to run a format on a GPU.

    fp8 needs compute capability 7.5 (weight-only before 8.9), int4 7.5, the 4-bit floats 8.0.
    Other vendors' 4-bit floats need hardware that states a 4-bit peak.

    Source:
        vLLM quantization hardware table, docs.vllm.ai/en/latest/features/quantization.
    """
    if gpu.compute_capability is not None:
        needed = {"fp8": 7.5, "int8": 7.5, "int4": 7.5, "mxfp4": 8.0, "nvfp4": 8.0, "bf16": 8.0}.get(weight_format, 0.0)
        return float(gpu.compute_capability) < needed
    if weight_format == "nvfp4":
        return True
    return weight_format == "fp8" and "fp8" not in gpu.peak_flop_per_s
