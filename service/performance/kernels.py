"""Which measured kernels stand for a deployment, and the tables of them."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.derived import derived
from service.engine.engines.base import Latents
from service.engine.facts import ModelFacts
from service.engine.formats.elements import HALF_BYTES, cache_bytes
from service.engine.time.steps import Deployed
from service.performance.kernel_tables import KernelTables, NotMeasuredError, in_process
from service.performance.measured_experts import were_measured
from service.performance.nodes import crosses_nodes, network_s, ranks_of_stage, with_network
from service.performance.quantization_modes import quantization_modes
from service.performance.restated import restated, shapes_of
from service.performance.stored import Kernels
from service.performance.tables import StepTables

# DeepEP was measured with attention to all latents in fp8, whatever the cache stores, and to picked ones by the cache.
EXCHANGED: Final[Mapping[str, str]] = {
    "gemm_quant_mode": "fp8_block",
    "moe_quant_mode": "fp8_block",
    "kvcache_quant_mode": "fp8",
    "fmha_quant_mode": "fp8_block",
}
# Keys of a config that describe how it is stored; the modes say it instead.
STORAGE_KEYS: Final = frozenset({"quantization_config", "compression_config", "hf_quant_config"})


def measured_step_tables(key: Deployed, tables: KernelTables | None = None) -> StepTables:
    """Return measured tables for the first quantization mode that has data.

    Raises:
        NotMeasuredError: none has; the message is that of the most faithful one.
    """
    found = (tables or in_process()).of(kernels_of(key))
    if key.layout.all2all_backend is not None:
        return found  # measured with the network
    return with_network(found, network_s(key.model.architecture, key.gpu, key.layout))


def kernels_of(key: Deployed) -> Kernels:
    """Return which measured kernels stand for a deployment.

    Raises:
        NotMeasuredError: none can.
    """
    system, layout = key.gpu.measured_as, key.layout  # without caches over ranks: see `spread`
    if system is None:
        raise NotMeasuredError(f"no kernels were measured on {key.gpu.id}")
    if not key.model.config_json:
        raise NotMeasuredError("the model's config is not known")
    if layout.all2all_backend is not None:
        return Kernels(
            config_json=_plain_config(key.model),
            system=system,
            layout=layout,
            engine=key.rules.engine,
            modes=(_exchanged_modes(key),),
        )
    engine = key.rules.serving_engine.kernels_like(key.checkpoint.quantization.scheme, key.gpu.architecture)
    return Kernels(
        config_json=_plain_config(key.model),
        restated_json=_restated_config(key.model),
        system=system,
        layout=layout if layout.decode_context_parallel_size == 1 else replace(layout, decode_context_parallel_size=1),
        engine=engine,
        modes=tuple(
            quantization_modes(
                key.checkpoint.quantization,
                key.gpu,
                engine,
                key.kv_cache_dtype,
                weight_format=key.checkpoint.weight_format,
                latents=_latents_of(key.model),
            )
        ),
        crosses_nodes=crosses_nodes(key.gpu, ranks_of_stage(key.layout)),
    )


def _exchanged_modes(key: Deployed) -> Mapping[str, str]:
    """Return the quantization modes of a layout whose ranks send tokens by DeepEP."""
    if all(need.kind == "latent" for mixer in key.model.architecture.mixers for need in mixer.kernel_needs):
        return EXCHANGED
    kept = "fp8" if cache_bytes(key.kv_cache_dtype, HALF_BYTES) < HALF_BYTES else "bfloat16"
    return {**EXCHANGED, "kvcache_quant_mode": kept, "fmha_quant_mode": "bfloat16"}


def _latents_of(model: ModelFacts) -> Latents | None:
    """Return which latents layers keep, whose kernels were measured with the matrices around them."""
    needs = [need for mixer in model.architecture.mixers for need in mixer.kernel_needs]
    if any(need.reads_fp8_only for need in needs):
        return "compressed"
    return "whole" if any(need.kind in ("latent", "sparse") for need in needs) else None


@derived(1)
def _plain_config(model: ModelFacts) -> str:
    """Return a model's config without its storage."""
    return json.dumps(_without_storage(json.loads(model.config_json)), sort_keys=True)


@derived(1)
def _restated_config(model: ModelFacts) -> str:
    """Return a config of a class with the same matrices; nothing without one, or where its experts have no kernels."""
    config, shapes = restated(model.architecture), shapes_of(model.architecture)
    has_kernels = shapes is not None and were_measured(shapes)
    return json.dumps(config, sort_keys=True) if config is not None and has_kernels else ""


def _without_storage(config: Mapping[str, object]) -> dict[str, object]:
    """Return the config, and the configs inside it, without their quantization."""
    return {
        name: _without_storage(value) if isinstance(value, dict) else value
        for name, value in config.items()
        if name not in STORAGE_KEYS
    }
