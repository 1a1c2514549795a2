"""From catalog entries to what the engine computes with."""

import json
import logging
from dataclasses import replace
from typing import Final

from service.catalog.entries import GpuEntry, ModelEntry, OfferEntry
from service.engine.errors import EngineError, UnsupportedModelError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.families import as_loaded, parse_architecture
from service.engine.fleet.questions import Offer
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import Gpu

logger = logging.getLogger(__name__)

# Direct one-way rates assumed where a catalog entry states no fabric: PCIe 4.0 x16 and 100 Gb/s Ethernet.
PCIE_BYTES_PER_S: Final = 32e9
ETHERNET_BYTES_PER_S: Final = 12.5e9
PEAKS: Final = {
    "fp32": "peak_fp32_flop_per_s",
    "bf16": "peak_bf16_flop_per_s",
    "fp16": "peak_fp16_flop_per_s",
    "fp8": "peak_fp8_flop_per_s",
    "int8": "peak_int8_op_per_s",
    "fp4": "peak_fp4_flop_per_s",
}


def model_facts(entry: ModelEntry) -> ModelFacts | EngineError:
    """Return what the engine computes with, or its refusal of the model.

    A checkpoint with a quantization that has no rule is left out, unless it is the model's own.
    """
    try:
        architecture = parse_architecture(entry.config)
        checkpoints = [each for each in (_checkpoint(entry, index) for index in range(len(entry.checkpoints))) if each]
    except EngineError as refusal:
        return refusal
    except Exception as error:
        logger.warning("the config of %s cannot be read", entry.id, exc_info=error)
        return UnsupportedModelError("the config cannot be read: no reader knows its form", field="config")
    return ModelFacts(
        id=entry.id,
        architecture=architecture,
        checkpoints=tuple(checkpoints),
        source=entry.source.url,
        config_json=json.dumps(entry.config, sort_keys=True),
    )


def _checkpoint(entry: ModelEntry, index: int) -> Checkpoint | None:
    stated = entry.checkpoints[index]
    whole = {**entry.config, **(stated.config or {})}
    try:
        config = stated.quantization_config
        quantization = parse_quantization(as_loaded(whole, config) if config else None)
        architecture = parse_architecture(whole) if stated.config else None
    except EngineError:
        if stated.is_default:
            raise
        return None
    if stated.weight_format == "fp8" and quantization.scheme == "fp8-block":
        quantization = replace(quantization, expert_scheme="fp8-block")
    return Checkpoint(
        weight_format=stated.weight_format,
        quantization=quantization,
        hf_id=stated.hf_id,
        is_default=stated.is_default,
        kv_cache_dtype=stated.kv_cache_dtype or quantization.kv_cache_dtype,
        source=stated.source.url,
        architecture=architecture,
        config_json=json.dumps(whole, sort_keys=True) if stated.config else "",
    )


def gpu_facts(entry: GpuEntry) -> Gpu:
    """Return a GPU as its figures state it."""

    def figure(name: str, default: float = 0.0) -> float:
        stated = entry.figures.get(name)
        return default if stated is None else float(stated.value)

    # What a process can see is a little less than the driver reports; the engine's budget is a share of it.
    usable = entry.figures.get("usable_memory_bytes", entry.figures["memory_bytes"])
    return Gpu(
        id=entry.id,
        name=entry.name,
        vendor=entry.vendor,
        architecture=entry.architecture,
        compute_capability=entry.compute_capability,
        memory_bytes=int(usable.value),
        driver_memory_bytes=int(figure("memory_bytes")),
        memory_bandwidth_bytes_per_s=figure("memory_bandwidth_bytes_per_s"),
        peak_flop_per_s={key: figure(name) for key, name in PEAKS.items() if name in entry.figures},
        gpus_per_node=entry.gpus_per_node,
        scale_up_domain_gpus=entry.scale_up_domain_gpus,
        scale_up_bytes_per_s=figure("scale_up_bytes_per_s", PCIE_BYTES_PER_S),
        scale_out_bytes_per_s=figure("scale_out_bytes_per_s", ETHERNET_BYTES_PER_S),
        source=usable.source.url,
        measured_as=entry.measured_as,
    )


def offer_facts(entry: OfferEntry) -> Offer:
    """Return an offer as the engine compares it."""
    return Offer(
        id=entry.id,
        provider=entry.provider,
        instance_type=entry.instance_type,
        region=entry.region,
        gpu=entry.gpu,
        gpu_count=entry.gpu_count,
        usd_per_hour=entry.usd_per_hour,
        as_of=entry.as_of.isoformat(),
        tier=entry.tier,
        purchase=entry.purchase,
        commitment_months=entry.commitment_months,
        source=entry.source.url,
    )
