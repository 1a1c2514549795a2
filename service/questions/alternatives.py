"""What may stand in the place of a GPU or of a model: other GPUs that are rented out, smaller models, leaner ones.

    smaller   of the same line of one publisher, at most three quarters of the parameters; the same version first, then
              the largest
    leaner    half to one and a half times the parameters, at most half the bytes of cache a token: latent attention,
              windows, recurrent layers; the nearest in size first

What another model answers is another matter: quality is not compared.
"""

import re
from collections.abc import Iterator
from itertools import takewhile
from math import log
from typing import Final

from service.catalog.snapshot import Snapshot
from service.engine.errors import EngineError
from service.engine.facts import ModelFacts
from service.engine.fleet.questions import Offer
from service.engine.fleet.shortlist import computes_in, product_line
from service.engine.inputs import Gpu, Layout, WeightFormat
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters

SMALLER: Final = 0.75  # at most this part of the parameters
ALIKE_IN_SIZE: Final = (0.5, 1.5)
LEANER: Final = 0.5  # at most this part of the bytes of cache a token
MOST_MODELS: Final = 3  # of each kind
WORD: Final = re.compile(r"[a-z]+|\d+")


def other_gpus(catalog: Snapshot, asked: Gpu, weight_format: WeightFormat, offers: tuple[Offer, ...]) -> Iterator[Gpu]:
    """Yield the other GPUs of data centres that somebody in question rents out, and that compute in a format."""
    rented = {offer.gpu for offer in offers} - {asked.id}
    for gpu_id in sorted(rented):
        gpu = catalog.gpus[gpu_id]
        is_native = weight_format in gpu.peak_flop_per_s if weight_format == "bf16" else computes_in(gpu, weight_format)
        if product_line(gpu) == "data-centre" and is_native:
            yield gpu


def smaller_models(catalog: Snapshot, asked: ModelFacts) -> Iterator[ModelFacts]:
    """Yield smaller models of the same line: of the same version first, then the largest."""
    entry = catalog.model_entries.get(asked.id)
    if entry is None or entry.publisher is None:
        return
    most = SMALLER * num_parameters(asked.architecture)
    near = [
        (-_alike(model.id, asked.id), -num_parameters(model.architecture), model.id)
        for model in _sizable(catalog)
        if catalog.model_entries[model.id].publisher == entry.publisher
        and model.id.split("-")[0] == asked.id.split("-")[0]
        and num_parameters(model.architecture) <= most
    ]
    yield from (catalog.model(model_id) for _, _, model_id in sorted(near)[:MOST_MODELS])


def leaner_models(catalog: Snapshot, asked: ModelFacts) -> Iterator[ModelFacts]:
    """Yield models of about the same size whose cache takes much less: the nearest in size first."""
    size, cached = num_parameters(asked.architecture), cache_bytes_per_token(asked)
    least, most = (times * size for times in ALIKE_IN_SIZE)
    near = [
        (abs(log(num_parameters(model.architecture) / size)), model.id)
        for model in _sizable(catalog)
        if least <= num_parameters(model.architecture) <= most
        and model.id != asked.id
        and cache_bytes_per_token(model) <= LEANER * cached
    ]
    yield from (catalog.model(model_id) for _, model_id in sorted(near)[:MOST_MODELS])


def cache_bytes_per_token(model: ModelFacts) -> int:
    """Return the bytes that a token far from the beginning takes in the cache of the whole model. [bytes]."""
    return cache_shape(model.architecture, Layout(), "auto", None).bytes_per_token


def _alike(one: str, other: str) -> int:
    """Return how many words and numbers two names begin with alike.

    >>> _alike("llama-3.3-70b", "llama-3.1-8b"), _alike("llama-3.3-70b", "llama-30b")
    (2, 1)
    """
    pairs = zip(WORD.findall(one), WORD.findall(other), strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _sizable(catalog: Snapshot) -> Iterator[ModelFacts]:
    for facts in catalog.built_models.values():
        if not isinstance(facts, EngineError):
            yield facts
