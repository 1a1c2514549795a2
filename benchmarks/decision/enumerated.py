"""Every deployment of a question, enumerated by loops of its own: nothing of the service's search is asked.

    layouts     TP 1 to 8, 16, 32, 64 x PP 1 to 8 x DP 1 to 64 x experts cut or dealt out x any divisor of TP for
                the tokens of a cache
    replicas    the most that would still be better than what the service chose: fewer carry no more
    settings    max_num_batched_tokens 256 to 16,384, and the engine's own; max_num_seqs as many as one replica is
                asked for, and the engine's own

A deployment is left out that the documented space leaves out: no odd stages of attention copies, no replica over
several servers that are not whole. Prices are counted here as well, offer by offer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf
from typing import Final

from service.engine.errors import EngineError
from service.engine.fleet.choice import deployments
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.questions import Offer, SizeQuestion, StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import Gpu, StatedLayout

TENSOR: Final = (1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64)
BUDGETS: Final = (None, 256, 512, 1_024, 2_048, 4_096, 8_192, 16_384)
MOST_RANKS: Final = 64

Cost = tuple[float, float]  # GPUs, then price; or price, then GPUs paid


@dataclass(frozen=True, slots=True)
class Shape:
    """One layout, and how many GPUs a replica of it takes."""

    tensor: int
    stages: int
    copies: int
    experts: bool
    spread: int

    @property
    def gpus(self) -> int:
        """Return the GPUs of one replica."""
        return self.tensor * self.stages * self.copies

    @property
    def stated(self) -> StatedLayout:
        """Return the layout as a caller states it."""
        return StatedLayout(
            tensor_parallel_size=self.tensor,
            pipeline_parallel_size=self.stages,
            data_parallel_size=self.copies,
            expert_parallel=self.experts,
            decode_context_parallel_size=self.spread if self.spread > 1 else None,
        )


def shapes(gpu: Gpu, most_gpus: float, *, has_experts: bool) -> Iterator[Shape]:
    """Yield the layouts of the documented space that take at most so many GPUs."""
    for tensor in TENSOR:
        for stages in range(1, 9):
            for copies in range(1, MOST_RANKS // tensor + 1 if has_experts else 2):
                shape = Shape(tensor, stages, copies, experts=False, spread=1)
                if shape.gpus > most_gpus or not _is_documented(gpu, shape):
                    continue
                for experts in (False, True) if has_experts and tensor * copies > 1 else (False,):
                    for spread in (size for size in range(1, tensor + 1) if tensor % size == 0):
                        yield replace(shape, experts=experts, spread=spread)


def _is_documented(gpu: Gpu, shape: Shape) -> bool:
    """Return whether the space speaks of a layout: inside a server or a rack's domain, or over whole servers."""
    node, domain = gpu.gpus_per_node, min(gpu.scale_up_domain_gpus, MOST_RANKS)
    if shape.tensor > min(max(node, domain), MOST_RANKS):
        return False
    if shape.stages > 1 and shape.copies > 1:
        is_even = all(size & (size - 1) == 0 for size in (shape.stages, shape.copies))
        if not is_even or shape.gpus > 2 * node:
            return False
    if shape.stages == shape.copies == 1 or shape.gpus <= node:
        return True
    is_in_domain = shape.gpus <= domain and shape.gpus & (shape.gpus - 1) == 0
    return shape.gpus % node == 0 and (is_in_domain or shape.gpus // node in (2, 3, 4, 6, 8))


def price_of(gpu: Gpu, offers: Sequence[Offer], replicas: int, gpus_per_replica: int) -> Cost:
    """Return what replicas cost an hour, and the GPUs paid: each whole in an instance, or over whole servers."""
    told = (inf, 0.0)
    for offer in (each for each in offers if each.gpu == gpu.id):
        if offer.gpu_count >= gpus_per_replica:
            instances = ceil(replicas / (offer.gpu_count // gpus_per_replica))
        elif offer.gpu_count >= gpu.gpus_per_node:
            instances = replicas * ceil(gpus_per_replica / offer.gpu_count)
        else:
            continue
        told = min(told, (round(instances * offer.usd_per_hour, 6), float(instances * offer.gpu_count)))
    return told


def merit(question: SizeQuestion, replicas: int, gpus_per_replica: int, *, by_price: bool) -> Cost:
    """Return what is compared: GPUs, then price; or price, then GPUs paid."""
    gpus, (price, paid) = (
        float(replicas * gpus_per_replica),
        price_of(question.gpu, question.offers, replicas, gpus_per_replica),
    )
    if not by_price:
        return gpus, price
    return price, gpus if price == inf else paid


def most_replicas(question: SizeQuestion, gpus_per_replica: int, than: Cost, *, by_price: bool) -> int:
    """Return the most replicas of so many GPUs that are truly better; 0 where none is."""
    count = 0
    while merit(question, count + 1, gpus_per_replica, by_price=by_price) < than and count < MOST_REPLICAS:
        count += 1
    return count


MOST_REPLICAS: Final = 4_096


def stated_settings(question: SizeQuestion, shape: Shape, replicas: int) -> Iterator[StatedSettings]:
    """Yield settings to state: every token budget, with as many requests as a rank is asked for, or left alone.

    But for those that hold no image of a model that reads them whole: the engine does not start with them.
    """
    users, encoder = question.load.concurrent_requests, question.model.architecture.encoder
    is_whole = encoder is not None and question.model.architecture.sees_images_both_ways
    image = encoder.max_tokens_per_item if encoder is not None and is_whole else 0
    each = None if users is None else ceil(ceil(users / replicas) / shape.copies)
    for budget in BUDGETS:
        for seqs in (each, None):
            if budget is not None and (budget < image or (seqs is not None and seqs > budget)):
                continue
            yield replace(question.settings, max_num_batched_tokens=budget, max_num_seqs=seqs)


def pinned(question: SizeQuestion) -> Deployment | None:
    """Return what the service answers where layout and settings are stated; None where it refuses, or nothing fits."""
    try:
        chosen = best(deployments(question), question)
    except EngineError:
        return None
    return chosen if chosen.is_feasible else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Better:
    """A stated deployment that is better than what the service chose."""

    chosen: Cost
    stated: Cost
    shape: Shape
    settings: StatedSettings


def better_than(
    question: SizeQuestion, chosen: Cost, *, by_price: bool, most_shapes: int | None = None
) -> tuple[Better | None, int]:
    """Return a stated deployment that beats what was chosen, if there is any, and how many were asked for.

    Args:
        question: what to deploy.
        chosen: what the service chose: GPUs and price, or price and GPUs paid.
        by_price: price comes first. [yes or no]
        most_shapes: layouts to ask for at most, spread over all; None: all.
    """
    has_experts = question.model.architecture.has_experts
    possible = [
        (shape, replicas)
        for shape in shapes(question.gpu, _most_gpus(chosen, by_price=by_price), has_experts=has_experts)
        if (replicas := most_replicas(question, shape.gpus, chosen, by_price=by_price))
    ]
    step = 1 if most_shapes is None else max(len(possible) // most_shapes, 1)
    asked = 0
    for shape, replicas in possible[::step]:
        for settings in stated_settings(question, shape, replicas):
            asked += 1
            one = pinned(replace(question, layout=shape.stated, settings=settings))
            if one is None:
                continue
            told = merit(question, one.replicas, shape.gpus, by_price=by_price)
            if told < chosen:
                return Better(chosen=chosen, stated=told, shape=shape, settings=settings), asked
    return None, asked


def _most_gpus(chosen: Cost, *, by_price: bool) -> float:
    return MOST_RANKS * 8 if by_price else chosen[0]
