"""Which measured kernels stand for a checkpoint: aiconfigurator-core's quantization modes."""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from service.engine.engines.base import Latents
from service.engine.engines.registry import engine_named
from service.engine.facts import Checkpoint
from service.engine.formats.elements import HALF_BYTES, cache_bytes
from service.engine.formats.quantization import Quantization
from service.engine.inputs import EngineName, Gpu, KvCacheDtype, WeightFormat

# A projection that every attention layer has, and an expert: what a checkpoint may leave in the model's dtype.
ATTENTION_MODULE = "model.layers.1.self_attn.o_proj"
EXPERT_MODULE = "model.layers.1.mlp.experts.0.down_proj"
HALF = "bfloat16"
# What a mode is of, in words.
PARTS: Final[Mapping[str, str]] = {
    "gemm_quant_mode": "dense layers", "moe_quant_mode": "experts", "kvcache_quant_mode": "the cache",
}  # fmt: skip


def quantization_modes(
    quantization: Quantization,
    gpu: Gpu,
    engine: EngineName,
    kv_cache_dtype: KvCacheDtype,
    *,
    weight_format: WeightFormat | None = None,
    latents: Latents | None = None,
) -> Iterator[Mapping[str, str]]:
    """Yield the modes to ask for, the most faithful first; later ones stand in where it has no data.

    Args:
        quantization: how the checkpoint stores its layers.
        gpu: what runs it.
        engine: whose kernels.
        kv_cache_dtype: of the cache.
        weight_format: what most of the checkpoint is in: its experts', which may be stored otherwise than the rest.
        latents: which ones layers keep; their kernels were measured with the matrices around them.
    """
    cache = {"kvcache_quant_mode": "fp8" if cache_bytes(kv_cache_dtype, HALF_BYTES) < HALF_BYTES else HALF}
    of_latents = None if latents is None else engine_named(engine).latent_kernels(latents, gpu.architecture)
    for dense, experts in _kernels(quantization, gpu.architecture, engine, weight_format):
        yield {
            "gemm_quant_mode": HALF if _keeps(quantization, ATTENTION_MODULE) else _of_layer(dense, of_latents),
            "moe_quant_mode": HALF if _keeps(quantization, EXPERT_MODULE) else experts,
            **cache,
        }


def stored_as(checkpoint: Checkpoint) -> str:
    """Return how a checkpoint stores its layers, and its experts where those are stored otherwise.

    DeepSeek-V4-Flash states fp8 in blocks, and its experts have four bits (config.json, `expert_dtype`).
    """
    scheme, weight_format = checkpoint.quantization.scheme, checkpoint.weight_format
    return f"{scheme} with experts in {weight_format}" if stores_experts_apart(checkpoint) else scheme


def stores_experts_apart(checkpoint: Checkpoint) -> bool:
    """Return whether experts are in four bits beside layers in blocks of fp8."""
    in_four_bits = _in_four_bits(checkpoint.weight_format, is_blackwell=True)
    return checkpoint.quantization.is_fp8_in_blocks and bool(in_four_bits)


def _keeps(quantization: Quantization, module: str) -> bool:
    return quantization.of(module).keeps(module)


def _of_layer(dense: str, of_latents: str | None) -> str:
    """Return the mode of a layer whose matrices have one, and whose latents may have been measured in another."""
    return of_latents if dense == "fp8" and of_latents is not None else dense


def _kernels(
    quantization: Quantization, gpu_architecture: str, engine: EngineName, weight_format: WeightFormat | None
) -> tuple[tuple[str, str], ...]:
    """Return (dense, expert) kernels of a scheme."""
    is_blackwell = gpu_architecture.startswith("blackwell")
    is_untuned = gpu_architecture in engine_named(engine).untuned_fp8_experts
    experts = ("fp8_block", "fp8") if is_untuned else ("fp8", "fp8_block")
    match quantization.scheme:
        case "none":
            return ((HALF, HALF),)
        case "fp8-tensor":
            dense = "fp8_static" if quantization.is_static else "fp8"
            return ((dense, experts[0]), *(("fp8", each) for each in experts))
        case "fp8-channel" | "mxfp8":
            return tuple(("fp8", each) for each in experts)
        case "fp8-block":
            dense = engine_named(engine).fp8_block_kernels
            own = _in_four_bits(weight_format, is_blackwell=is_blackwell)
            return (*((dense, each) for each in own), (dense, "fp8_block"), (dense, "fp8"), ("fp8", "fp8"))
        case "int8-both":
            return (("sq", "fp8"), ("int8_wo", HALF), ("fp8", "fp8"))
        case "int8-group":
            return (("int8_wo", HALF),)
        case "int4-group" | "bitsandbytes-4bit":
            return (("int4_wo", "int4_wo"), ("int4_wo", HALF))
        case "mxfp4":
            modes = ("w4a8_mxfp4_mxfp8", "w4a16_mxfp4") if is_blackwell else ("w4a16_mxfp4",)
            return tuple((HALF, mode) for mode in modes)
        case "nvfp4":
            weight_only = (("nvfp4_wo", "nvfp4_wo"), ("w4a16_nvfp4", "w4a16_nvfp4"), ("int4_wo", "int4_wo"))
            return (("nvfp4", "nvfp4"), *weight_only) if is_blackwell else weight_only
        case _ as never:
            assert_never(never)


def _in_four_bits(weight_format: WeightFormat | None, *, is_blackwell: bool) -> tuple[str, ...]:
    """Return expert kernels of four bits, beside layers in blocks of fp8; none where experts are stored as those.

    SGLang takes TensorRT-LLM's on Blackwell: 0.11 ms a layer of 64 tokens on four B200, where fp8 takes 0.29.

    Source: aiconfigurator-core 0.12 `sdk/models/helpers.py` ("sglang_mxfp4_flashinfer_trtllm_moe"),
    systems/data/b200_sxm/moe/sglang/0.5.14/moe_perf.parquet.
    """
    match weight_format:
        case "mxfp4":
            return ("w4a8_mxfp4_mxfp8_trtllm", "w4a8_mxfp4_mxfp8", "w4a16_mxfp4") if is_blackwell else ("w4a16_mxfp4",)
        case "nvfp4":
            return ("nvfp4", *_in_four_bits("mxfp4", is_blackwell=True)) if is_blackwell else ("nvfp4_wo",)
        case _:
            return ()
