"""What a caller could change to need fewer GPUs or less money: single settings, and useful pairs of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import TypeVar

from service.engine.answers.results import Lever
from service.engine.engines.runs_on import lacks_kernels
from service.engine.errors import EngineError
from service.engine.facts import BITS
from service.engine.fleet.aims import NOTHING, Aim, Merit, aim_of
from service.engine.fleet.ceilings import timed_as
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.choice import better
from service.engine.fleet.costs import paid_usd
from service.engine.fleet.deployments import Deployment, resolve_size
from service.engine.fleet.questions import CapacityQuestion, SizeQuestion, StatedSettings
from service.engine.fleet.results import Scalar
from service.engine.fleet.shortlist import FOUR_BITS
from service.engine.inputs import HALF_FORMATS, KvCacheDtype, WeightFormat

Asked = TypeVar("Asked", SizeQuestion, CapacityQuestion)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Settings to change; None stays as it is."""

    kv_cache_dtype: KvCacheDtype | None = None
    weight_format: WeightFormat | None = None

    @property
    def named(self) -> dict[str, Scalar]:
        """Return what changes, by its own names."""
        names = {"kv_cache_dtype": self.kv_cache_dtype, "weight_format": self.weight_format}
        return {name: value for name, value in names.items() if value is not None}

    def is_part_of(self, other: "Change") -> bool:
        """Return whether another change makes this one too."""
        return self.named.items() <= other.named.items()

    def made(self, stated: StatedSettings) -> StatedSettings:
        """Return settings with the change."""
        return replace(
            stated,
            kv_cache_dtype=self.kv_cache_dtype or stated.kv_cache_dtype,
            weight_format=self.weight_format or stated.weight_format,
            quantization=None if self.weight_format else stated.quantization,
        )


def changes_to_try(question: SizeQuestion | CapacityQuestion) -> tuple[Change, ...]:
    """Return the changes worth trying: a narrower cache, narrower weights, and both at once."""
    stated = question.settings
    cache: tuple[KvCacheDtype, ...] = ("fp8",) if stated.kv_cache_dtype in (None, "auto", *HALF_FORMATS) else ()
    weights = _narrower(question)
    return (
        *(Change(kv_cache_dtype=dtype) for dtype in cache),
        *(Change(weight_format=weight_format) for weight_format in weights),
        *(Change(kv_cache_dtype=dtype, weight_format=other) for dtype in cache for other in weights),
    )


def _narrower(question: SizeQuestion | CapacityQuestion) -> tuple[WeightFormat, ...]:
    """Return formats of fewer bits: fp8, and one of four bits.

    That is one the model is published in; of several, weights alone (int4) where the GPU does not compute in four.
    """
    model, stated = question.model, question.settings
    published = {each.weight_format for each in model.checkpoints if each.hf_id is not None}
    engine, computes = question.rules.engine, "fp4" in question.gpu.peak_flop_per_s
    running = [each for each in FOUR_BITS if each in published and not lacks_kernels(question.gpu, engine, each)]
    four_bits = sorted(running, key=lambda each: (each == "int4") == computes)
    narrower: tuple[WeightFormat, ...] = ("fp8", four_bits[0] if four_bits else "int4")
    now = stated.quantization or stated.weight_format or own_checkpoint(model).weight_format
    return tuple(each for each in narrower if BITS[each] < BITS[now])


def written(change: Mapping[str, Scalar]) -> str:
    """Return a change as a caller states it."""
    return " and ".join(f"{name}={value}" for name, value in change.items())


def changes_that_fit(question: Asked, fits: Callable[[Asked], bool]) -> tuple[str, ...]:
    """Return, for a question whose GPUs or pods are given, sentences that say which changes make it fit.

    A pair is told only where neither of its changes alone does.

    Args:
        question: what does not fit as it was asked.
        fits: whether a question does.
    """
    told: list[Change] = []
    for change in changes_to_try(question):  # pairs come last
        if any(part.is_part_of(change) for part in told):
            continue
        try:
            if fits(replace(question, settings=change.made(question.settings))):
                told.append(change)
        except EngineError:
            continue  # the engine does not run this format there
    return tuple(f"{written(change.named)} fits" for change in told)


def levers(question: SizeQuestion, chosen: Deployment) -> tuple[Lever, ...]:
    """Return the changes that would save GPUs or money, or make an infeasible question feasible.

    A pair is told only where it saves more than each of its changes alone.
    """
    aim = aim_of("gpus", question.gpu, question.offers)
    now = aim.merit(chosen.layout, chosen.replicas) if chosen.is_feasible else NOTHING
    told: dict[Change, Merit] = {}
    for change in changes_to_try(question):  # pairs come last
        beaten = min((then for part, then in told.items() if part.is_part_of(change)), default=now)
        then = _changed(question, change, beaten, aim)
        if then < beaten:
            told[change] = then
    in_order = sorted(told, key=lambda change: (*told[change], *change.named))
    return tuple(lever_of(change.named, now, told[change], _basis(question, change, chosen)) for change in in_order)


def _changed(question: SizeQuestion, change: Change, beaten: Merit, aim: Aim) -> Merit:
    """Return the GPUs and the price with a change, where they are less than so much; else that."""
    if beaten[0] <= 1 + question.headroom.spare_replicas:
        return beaten  # no replica takes less than one GPU
    try:
        return better(replace(question, settings=change.made(question.settings)), beaten, aim)
    except EngineError:
        return beaten  # the caller's layout is not legal for this format


def _basis(question: SizeQuestion, change: Change, chosen: Deployment) -> str | None:
    """Return what the times of a change rest on, on the layout that was chosen; None where time does not decide.

    Kernels of one format may have been measured on a GPU, and those of another be told by its data sheet.
    """
    if chosen.replica is None or question.timers is None:
        return None
    changed = resolve_size(replace(question, settings=change.made(question.settings)))
    timing = question.timers.timer(timed_as(changed, chosen.layout))
    return None if timing is None else timing.basis.name


def lever_of(change: Mapping[str, Scalar], now: Merit, then: Merit, basis: str | None) -> Lever:
    """Return a lever from what is paid now, what would be paid then, and what its times rest on."""
    (gpus_now, usd_now), (gpus, usd) = now, then
    is_priced = inf not in (usd, usd_now)
    return Lever(
        change=change,
        gpus=int(gpus),
        saves_gpus=0 if now == NOTHING else int(gpus_now - gpus),
        usd_per_hour=None if usd == inf else usd,
        saves_usd_per_hour=paid_usd(1, usd_now - usd) if is_priced else None,
        basis=basis,
    )
