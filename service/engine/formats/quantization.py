"""What a stated quantization means, method by method, and the usual recipe of a format where nothing is published.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/` (each method's `from_config`).
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.formats.auto_round import auto_round
from service.engine.formats.compressed_tensors import compressed_tensors
from service.engine.formats.modelopt import METHOD as MODELOPT
from service.engine.formats.modelopt import modelopt
from service.engine.formats.packed import ALL_EXPERTS, HEAD, packed_integers
from service.engine.formats.packed import METHODS as PACKED_METHODS
from service.engine.formats.quark import quark
from service.engine.formats.scheme import (
    MX_GROUP,
    UNQUANTIZED,
    Quantization,
    Scheme,
    block_length,
    checked_patterns,
    not_stated,
    unknown_scheme,
)
from service.engine.formats.torch_ao import torch_ao
from service.engine.inputs import WeightFormat

__all__ = ["UNQUANTIZED", "Quantization", "Scheme", "parse_quantization", "standard_quantization"]


def parse_quantization(stated: Mapping[str, object] | None) -> Quantization:
    """Return the scheme of a `quantization_config` (or of a whole `hf_quant_config.json`).

    ModelOpt alone nests what it states, and is told by `quant_method`, or by that block where no method is stated:
    vLLM 0.33 `modelopt.py` (`_extract_modelopt_quant_algo`: none of a config whose method is another).

    Raises:
        UnsupportedModelError: a method without a rule, by its name.
    """
    if not stated:
        return UNQUANTIZED
    inner = stated.get("quantization")
    is_modelopt = str(stated.get("quant_method") or MODELOPT).lower().startswith(MODELOPT)
    values = inner if is_mapping(inner) and is_modelopt else stated
    reader = ConfigReader(values)
    method = str(reader.raw("quant_method") or "").lower().replace("compressed_tensors", "compressed-tensors")
    algorithm = str(reader.raw("quant_algo") or ("MXFP8" if method == "mxfp8" else "")).upper()
    if method in READERS:
        return READERS[method](reader)
    ignored = _ignored(reader, IGNORE_NAMES_OF.get(method, IGNORE_NAMES))
    if method in PACKED_METHODS:
        return packed_integers(reader, method, ignored)
    if method in ("fp8", "bitsandbytes"):
        ignored = (*ignored, "lm_head")  # these loaders quantize linear layers only
    if method == "fp8":
        return _fp8(reader, ignored)
    if method == "mxfp4":
        return Quantization(
            scheme="mxfp4", method=method, block=32, ignored=ignored, experts_only=True, weight_format="mxfp4"
        )
    if method == "bitsandbytes":
        return _bitsandbytes(reader, ignored)
    if method == "compressed-tensors" and not algorithm:
        return compressed_tensors(reader, ignored)
    if method in ("modelopt", "modelopt_fp4", "mxfp8", "compressed-tensors", "") and algorithm:
        return modelopt(reader, algorithm, ignored)
    raise unknown_scheme(method or algorithm or "nothing")


def _fp8(reader: ConfigReader, ignored: tuple[str, ...]) -> Quantization:
    """Return fp8 with one scale for each matrix or block.

    Source:
        vLLM 0.33 `model_executor/layers/quantization/fp8.py` (`Fp8Config`, which has no default for
        `activation_scheme`); SGLang 0.5.23 `srt/layers/quantization/fp8.py`, the same.

    Raises:
        MissingConfigFieldError: it does not say when scales of activations are found.
        UnsupportedModelError: it says otherwise than a loader takes it.
    """
    activations = reader.raw("activation_scheme")
    if activations is None:
        raise not_stated("activation_scheme", "does not state", ACTIVATION_WORDS)
    block = block_length(reader, "weight_block_size")
    if activations not in (ACTIVATION_SCHEMES[:1] if block else ACTIVATION_SCHEMES):
        raise unknown_kind(
            "quantization_config.activation_scheme", activations, "dynamic" if block else ACTIVATION_WORDS
        )
    if block:
        # Scales of small blocks are repeated for every row: vLLM 0.33 `models/deepseek_v41/quant_config.py`.
        is_repeated = block == MX_GROUP and reader.raw("expert_dtype") is not None
        return Quantization(
            scheme="mxfp8" if is_repeated else "fp8-block",
            method="fp8",
            block=block,
            ignored=ignored,
            weight_format="fp8",
            expert_scheme=_expert_scheme(reader),
        )
    return Quantization(
        scheme="fp8-tensor",
        method="fp8",
        is_static=activations == "static",
        ignored=ignored,
        weight_format="fp8",
    )


def _fbgemm(reader: ConfigReader) -> Quantization:
    """Return fp8 with one scale a row; the head and experts, which are no linear layers, keep the model's dtype.

    Source:
        vLLM 0.33 `model_executor/layers/quantization/fbgemm_fp8.py`.

    Raises:
        MissingConfigFieldError: it does not state what the loader has no default for.
    """
    for name in ("modules_to_not_convert", "activation_scale_ub"):
        if reader.raw(name) is None:
            raise not_stated(name, "does not state", "a list" if name.startswith("modules") else "a number")
    kept = checked_patterns([*_ignored(reader, IGNORE_NAMES_OF[FBGEMM]), HEAD, ALL_EXPERTS], "modules_to_not_convert")
    return Quantization(scheme="fp8-channel", method=FBGEMM, ignored=kept, weight_format="fp8")


def _bitsandbytes(reader: ConfigReader, ignored: tuple[str, ...]) -> Quantization:
    stored = Quantization(scheme="int8-group", method="bitsandbytes", ignored=ignored, weight_format="int8")
    if reader.flag("load_in_8bit"):
        return stored
    return replace(stored, scheme="bitsandbytes-4bit", block=64, weight_format="int4")


def _expert_scheme(reader: ConfigReader) -> Scheme | None:
    """Return how experts are stored beside blocks of fp8, where a checkpoint says so: DeepSeek V4's conversions.

    Source: vLLM 0.33 `models/deepseek_v4/quant_config.py` (`moe_quant_algo`).
    """
    if reader.raw("moe_quant_algo") == "NVFP4":
        return "nvfp4"
    return "fp8-block" if reader.raw("expert_dtype") == "fp8" else None  # DeepSeek V4.1; V4 states it beside


FBGEMM: Final = "fbgemm_fp8"
# Methods whose configs say in words of their own what stays whole.
READERS: Final[Mapping[str, Callable[[ConfigReader], Quantization]]] = {
    "auto-round": auto_round,
    "inc": auto_round,
    "quark": quark,
    FBGEMM: _fbgemm,
    "torchao": torch_ao,
}
IGNORE_NAMES: Final = ("ignore", "exclude_modules", "ignored_layers", "modules_to_not_convert")
# Under which names a method's loader looks for modules that keep the model's dtype, and under no others.
IGNORE_NAMES_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "fp8": ("ignored_layers", "modules_to_not_convert"),
    **dict.fromkeys(("awq", "awq_marlin"), ("modules_to_not_convert",)),
    **dict.fromkeys(("gptq", "gptq_marlin"), ()),
    "bitsandbytes": ("llm_int8_skip_modules",),
    FBGEMM: ("modules_to_not_convert",),
}
ACTIVATION_SCHEMES: Final = ("dynamic", "static")
ACTIVATION_WORDS: Final = " or ".join(ACTIVATION_SCHEMES)


def _ignored(reader: ConfigReader, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first list of modules that keep the model's dtype, and that has any.

    Raises:
        UnsupportedModelError: an expression in it cannot be run in linear time, or it is too long.
    """
    stated = ((name, reader.raw(name)) for name in names)
    name, entries = next(((name, value) for name, value in stated if is_list(value) and value), ("", ()))
    return checked_patterns([str(entry) for entry in entries], name)


ATTENTION: Final = "re:.*attn\\..*"


def standard_quantization(weight_format: WeightFormat, *, is_mixture: bool = False) -> Quantization:
    """Return the usual recipe of a format, for models without a published checkpoint in it.

    Linear layers are quantized; embeddings, output head, norms, routers, towers, of NVFP4 what delta nets read with,
    and of mixtures in either the attention keep the model's dtype.

    Sources:
        vLLM `--quantization fp8` (one scale per matrix); llm-compressor W8A8 (one scale per
        channel); AutoAWQ default (4 bits, groups of 128, zero points); OCP MX v1.0 (groups of 32), of mixtures as
        AMD Quark's guide makes them (`--exclude_layers "*self_attn*" "*mlp.gate" "*lm_head"`; vLLM's method `mxfp4`
        reads experts alone, as gpt-oss ships); NVIDIA ModelOpt NVFP4 (groups of 16), whose checkpoints of models with
        delta nets keep `linear_attn` (nvidia/Qwen3.5-122B-A10B-NVFP4), or its `in_proj` (26,381,249,312 bytes of
        Inferact/Qwen3.8-27B-NVFP4, by models/Qwen/Qwen3.8-27B.yaml of vllm-project/recipes), and of most mixtures
        `self_attn` (hf_quant_config.json of DeepSeek-R1-0528, GLM-4.7, MiniMax-M2.5, Kimi-K2.6, Trinity-Large).
    """
    kept = ("lm_head", "re:.*\\.gate$", "re:.*router.*", "re:.*vision.*", "re:.*visual.*")
    match weight_format:
        case "bf16" | "fp16":
            return UNQUANTIZED
        case "fp8":
            return Quantization(
                scheme="fp8-tensor", method="fp8", ignored=kept, weight_format="fp8", is_made_at_load=True
            )
        case "int8":
            return Quantization(scheme="int8-both", method="compressed-tensors", ignored=kept, weight_format="int8")
        case "int4":
            return Quantization(
                scheme="int4-group",
                method="awq",
                block=128,
                has_zero_points=True,
                ignored=kept,
                weight_format="int4",
            )
        case "mxfp4":
            ignored = (*kept, ATTENTION) if is_mixture else kept
            return Quantization(scheme="mxfp4", method="mxfp4", block=32, ignored=ignored, weight_format="mxfp4")
        case "nvfp4":
            return Quantization(
                scheme="nvfp4",
                method="modelopt",
                block=16,
                ignored=(*kept, ATTENTION if is_mixture else "re:.*linear_attn\\.in_proj.*"),
                weight_format="nvfp4",
            )
