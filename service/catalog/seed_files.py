"""Reads the reviewed seed files into entries."""

from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import yaml

from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@lru_cache(maxsize=1)
def seed_entries() -> tuple[tuple[ModelEntry, ...], tuple[GpuEntry, ...], tuple[OfferEntry, ...]]:
    """Return every model, GPU and offer of the seed files, in the order of their ids."""
    data = resources.files("service.catalog").joinpath("data")
    models = tuple(
        sorted((_model(document) for document in _documents(data.joinpath("models"))), key=lambda entry: entry.id)
    )
    gpus = _read(data.joinpath("gpus.yaml"))
    offers = _read(data.joinpath("offers.yaml"))
    return (
        tuple(models),
        tuple(gpu_entry(document, gpus["sources"]) for document in sorted(gpus["gpus"], key=_id)),
        tuple(_offer(document, offers["sources"]) for document in sorted(offers["offers"], key=_id)),
    )


@lru_cache(maxsize=1)
def seeded_gpu_names() -> tuple[tuple[str, str], ...]:
    """Return every name of the GPUs of the seed files, each with the id it stands for."""
    gpus = _read(resources.files("service.catalog").joinpath("data", "gpus.yaml"))["gpus"]
    return tuple(
        (name, _id(gpu)) for gpu in gpus for name in (_id(gpu), str(gpu["name"]), *map(str, gpu.get("aliases") or ()))
    )


def _id(document: dict[str, Any]) -> str:
    return str(document["id"])


def _documents(folder: Traversable) -> Iterator[dict[str, Any]]:
    for file in folder.iterdir():
        if file.name.endswith(".yaml"):
            yield _read(file)


def _read(file: Traversable) -> dict[str, Any]:
    document = yaml.load(file.read_text(encoding="utf-8"), Loader=Loader)  # noqa: S506 - a safe loader, in C
    return dict(document)


def _model(document: dict[str, Any]) -> ModelEntry:
    parameters = document.get("num_parameters")
    return ModelEntry.model_validate(
        {
            "id": document["id"],
            "name": document["name"],
            "hf_id": document.get("hf_id"),
            "aliases": tuple(document.get("aliases") or ()),
            "publisher": document.get("publisher"),
            "config": document["config"],
            "num_parameters": None if parameters is None else parameters["value"],
            "checkpoints": [_checkpoint(each) for each in document["checkpoints"]],
            "source": document["source"],
        }
    )


def _checkpoint(document: dict[str, Any]) -> dict[str, Any]:
    weight_bytes = document.get("weight_bytes")
    return {
        "weight_format": document["weight_format"],
        "hf_id": document["hf_id"],
        "is_default": document.get("is_default", False),
        "quantization_config": document.get("quantization_config"),
        "config": document.get("config"),
        "kv_cache_dtype": document.get("kv_cache_dtype"),
        "weight_bytes": None if weight_bytes is None else weight_bytes["value"],
        "source": {key: document["source"][key] for key in ("url", "checked_on")},
    }


def _source(sources: dict[str, Any], key: str) -> dict[str, Any]:
    return {"url": sources[key]["url"], "checked_on": sources[key]["checked_on"]}


def gpu_entry(document: dict[str, Any], sources: dict[str, Any]) -> GpuEntry:
    """Return a GPU as its file states it, each figure with its source."""
    figures = {
        name: {
            "value": figure["value"],
            "printed_as": figure.get("printed_as"),
            "source": _source(sources, figure["source"]),
        }
        for name, figure in document["figures"].items()
        if figure is not None and figure.get("value") is not None
    }
    return GpuEntry.model_validate({**document, "aliases": tuple(document.get("aliases") or ()), "figures": figures})


def _offer(document: dict[str, Any], sources: dict[str, Any]) -> OfferEntry:
    return OfferEntry.model_validate({**document, "source": _source(sources, document["source"])})
