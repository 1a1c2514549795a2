"""Entries of no real thing, as they are sent, and with changes."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from service.catalog.database import writing
from service.catalog.disk import SCHEMA
from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.catalog.store import put_gpu, put_model, put_offer, raise_revision

SOURCE = {"url": "https://example.com/sheet", "checked_on": "2026-11-01"}
GPU: dict[str, Any] = {
    "id": "made-up-100gb",
    "name": "Made Up 100GB",
    "vendor": "nvidia",
    "architecture": "hopper",
    "compute_capability": "9.0",
    "aliases": ["madeup"],
    "gpus_per_node": 8,
    "scale_up_domain_gpus": 8,
    "scale_up_kind": "nvlink",
    "figures": {
        "memory_bytes": {"value": 107374182400, "printed_as": "100 GiB", "source": SOURCE},
        "memory_bandwidth_bytes_per_s": {"value": 3350000000000, "printed_as": "3.35 TB/s", "source": SOURCE},
    },
}
OFFER: dict[str, Any] = {
    "id": "made-up-offer",
    "provider": "aws",
    "instance_type": "p99.48xlarge",
    "region": "us-east-1",
    "gpu": "made-up-100gb",
    "gpu_count": 8,
    "usd_per_hour": 10.0,
    "as_of": "2026-11-01",
    "source": SOURCE,
}
MODEL: dict[str, Any] = {
    "id": "made-up-8b",
    "name": "Made Up 8B",
    "hf_id": "made/Up-8B",
    "aliases": ["up8"],
    "config": {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
    },
    "checkpoints": [{"weight_format": "bf16", "hf_id": "made/Up-8B", "is_default": True, "source": SOURCE}],
    "source": SOURCE,
}


def gpu(**changes: Any) -> GpuEntry:
    return GpuEntry.model_validate({**GPU, **changes})


def offer(**changes: Any) -> OfferEntry:
    return OfferEntry.model_validate({**OFFER, **changes})


def model(**changes: Any) -> ModelEntry:
    return ModelEntry.model_validate({**MODEL, **changes})


def published_as(hf_id: str) -> dict[str, Any]:
    """Return what names a model's repository, which no other model may have."""
    return {"hf_id": hf_id, "checkpoints": [{**MODEL["checkpoints"][0], "hf_id": hf_id}]}


def with_figure(name: str, value: Any) -> dict[str, Any]:
    """Return a GPU as it is sent, with one figure of its own."""
    return {**GPU, "figures": {**GPU["figures"], name: {"value": value, "source": SOURCE}}}


def fill(engine: Engine) -> None:
    """Write a small catalog: the samples, and another of each."""
    with writing(engine) as session, session.begin():
        put_gpu(session, gpu())
        put_gpu(session, gpu(id="other-gpu", name="Other", aliases=[]))
        put_model(session, model())
        put_model(session, model(id="other-model", name="Other", aliases=[], **published_as("made/Other")))
        put_offer(session, offer())
        put_offer(session, offer(id="other-offer", gpu="other-gpu"))
        raise_revision(session)


def of_another_release(path: Path) -> None:
    """Make a catalog kept on disk another release's."""
    _, line, entries = path.read_bytes().split(b"\n", 2)
    body = json.dumps({**json.loads(line), "release": "another"}).encode() + b"\n" + entries
    head = {"schema": SCHEMA, "sha256": sha256(body).hexdigest()}
    path.write_bytes(json.dumps(head).encode() + b"\n" + body)
