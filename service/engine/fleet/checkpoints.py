"""Which checkpoint is loaded, and in what format: as stated, as published, or the format's usual recipe."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, get_args

from service.engine.derived import derived
from service.engine.engines.classes import check_convolved, check_hosted, check_made_at_load
from service.engine.engines.device import Device
from service.engine.engines.methods import check_loading, check_method
from service.engine.engines.rules import has_unified_memory
from service.engine.engines.runs_on import check_bfloat16, check_experts, check_runs_format, check_selects
from service.engine.errors import RefusedStartError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.results import Assumption
from service.engine.fleet.starts import needs_float16
from service.engine.formats.quantization import standard_quantization
from service.engine.inputs import HALF_FORMATS, Gpu, WeightFormat
from service.engine.layers import Architecture
from service.engine.memory.kernels import needs_of

# Of each format, for models without a published checkpoint in it.
STANDARD_CHECKPOINTS: Final[Mapping[WeightFormat, Checkpoint]] = {
    weight_format: Checkpoint(
        weight_format=weight_format,
        quantization=standard_quantization(weight_format),
        hf_id=None,
        is_default=False,
        kv_cache_dtype=None,
        source="no checkpoint of this format is in the catalog; sized by the format's standard recipe",
    )
    for weight_format in get_args(WeightFormat)
}
MIXTURES: Final[Mapping[WeightFormat, Checkpoint]] = {
    weight_format: replace(standard, quantization=standard_quantization(weight_format, is_mixture=True))
    for weight_format, standard in STANDARD_CHECKPOINTS.items()
}


def standard_checkpoint(model: ModelFacts, weight_format: WeightFormat) -> Checkpoint:
    """Return the usual recipe of a format, for a model without a published checkpoint in it."""
    return (MIXTURES if model.architecture.has_experts else STANDARD_CHECKPOINTS)[weight_format]


def own_checkpoint(model: ModelFacts) -> Checkpoint:
    """Return the checkpoint that a model is loaded from when nobody states a format."""
    return next(each for each in model.checkpoints if each.is_default)


def loaded_checkpoint(
    model: ModelFacts, gpu: Gpu, device: Device, stated: StatedSettings
) -> tuple[Checkpoint, Assumption]:
    """Return what is loaded: the stated format, the model's own, or what the engine makes of it while it loads.

    Raises:
        RefusedStartError: the engine does not run the format on the GPU, or does not make it of this checkpoint.
    """
    is_in_float16 = needs_float16(model.architecture, gpu, device)
    loaded, note = _chosen(model, gpu, device, stated, is_in_float16=is_in_float16)
    is_stated = stated.quantization is not None or stated.weight_format is not None
    field = note.name if is_stated else "gpu"
    if model.architecture.hosted_parameters or model.architecture.is_convolved:
        _check_own_parts(model.architecture, gpu, device, loaded, field)
    check_loading(model.architecture, loaded.quantization, device, "gpu" if loaded.is_default else "weight_format")
    check_bfloat16(gpu, device, loaded.weight_format, field)
    if not device.is_vllm_on_cuda:
        check_runs_format(gpu, device, loaded.weight_format, loaded.quantization.method, field)
        check_selects(gpu, device, needs_of(model.architecture))
        if model.architecture.has_experts:
            check_experts(device, loaded.quantization.scheme, loaded.quantization.method, field)
    return loaded, note


def _check_own_parts(architecture: Architecture, gpu: Gpu, device: Device, loaded: Checkpoint, field: str) -> None:
    """Raise RefusedStartError where parts that few models have lie elsewhere, or are not made so in 8 bits."""
    name, tables = architecture.name, architecture.hosted_parameters
    if tables:
        check_hosted(name, tables, device, is_unified=has_unified_memory(gpu))
    if architecture.is_convolved:
        check_convolved(name, device)
    if loaded.quantization.is_made_at_load and loaded.hf_id is None:
        part = "tables of n-grams" if tables else "experts"
        check_made_at_load(f"{part} of {name}", loaded.weight_format, field)


def _chosen(
    model: ModelFacts, gpu: Gpu, device: Device, stated: StatedSettings, *, is_in_float16: bool
) -> tuple[Checkpoint, Assumption]:
    if stated.quantization is not None:
        made = _made_at_load(model, stated.quantization)
        return made, Assumption(name="quantization", value=stated.quantization, origin="request", source=made.source)
    if stated.weight_format is None:
        return _own(model, is_in_float16=is_in_float16)
    published = [each for each in _found(model) if each.weight_format == stated.weight_format]
    loading = (each for each in published if len(published) == 1 or _loads(model, each, gpu, device))
    loaded = next(loading, published[0] if published else standard_checkpoint(model, stated.weight_format))
    return loaded, Assumption(name="weight_format", value=stated.weight_format, origin="request", source=loaded.source)


def _found(model: ModelFacts) -> Iterator[Checkpoint]:
    """Yield the checkpoints whose repository is known: all, where nobody knows that of the model's own either.

    Of another edition only the shape is known, and no repository that a command could name.
    """
    is_nowhere = own_checkpoint(model).hf_id is None
    yield from (each for each in model.checkpoints if each.is_default or each.hf_id is not None or is_nowhere)


def _loads(model: ModelFacts, checkpoint: Checkpoint, gpu: Gpu, device: Device) -> bool:
    """Return whether an engine loads on a GPU how a checkpoint stores its weights."""
    stored = checkpoint.quantization
    try:
        if not device.is_vllm_on_cuda:
            check_runs_format(gpu, device, checkpoint.weight_format, stored.method, "weight_format")
        check_method(stored, device, "weight_format", model.architecture)
    except RefusedStartError:
        return False
    return True


def _own(model: ModelFacts, *, is_in_float16: bool) -> tuple[Checkpoint, Assumption]:
    own = own_checkpoint(model)
    if own.weight_format == "bf16" and is_in_float16:
        why = "the GPU has no bfloat16, and the engine falls back to float16"
        fallback = STANDARD_CHECKPOINTS["fp16"]
        return fallback, Assumption(name="weight_format", value="fp16", origin="default", source=why)
    return own, Assumption(name="weight_format", value=own.weight_format, origin="catalog", source=own.source)


def _made_at_load(model: ModelFacts, weight_format: WeightFormat) -> Checkpoint:
    """Return the model's own checkpoint, quantized while it is loaded; as it is where it is stored so already.

    Raises:
        RefusedStartError: it is stored in another format of few bits.

    Source: vLLM 0.33 `config/model.py` (`_verify_quantization`).
    """
    own = own_checkpoint(model)
    if own.weight_format == weight_format:
        return own
    if own.weight_format not in HALF_FORMATS:
        raise RefusedStartError(
            f"quantization={weight_format} is made of a checkpoint in 16 bits, and that of {model.id} "
            f"is stored in {own.weight_format}",
            field="quantization",
            accepted=f"no quantization, for the checkpoint as it is, or weight_format={weight_format}",
        )
    return _quantized(own, weight_format)


@derived(8)
def _quantized(own: Checkpoint, weight_format: WeightFormat) -> Checkpoint:
    stored_as = own.hf_id or "the checkpoint"
    made_of = f"the engine makes {weight_format} of {stored_as} while it loads; {own.source or 'as stated'}"
    return replace(STANDARD_CHECKPOINTS[weight_format], source=made_of)
