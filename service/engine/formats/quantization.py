"""How a checkpoint stores its weights: one closed description of every published scheme.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/` (each scheme's `create_weights`),
    `utils/quant_utils.py` (`is_layer_skipped`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from service.engine.config_reader import ConfigReader, is_list, is_mapping, unknown_kind
from service.engine.errors import UnsupportedModelError
from service.engine.formats.hashed import Hashed
from service.engine.formats.modules import UnusablePatternError, check_patterns, kept, names_of
from service.engine.inputs import KvCacheDtype, WeightFormat

Scheme = Literal[
    "none",
    "fp8-tensor",
    "fp8-channel",
    "fp8-block",
    "mxfp8",
    "int8-channel",
    "int4-group",
    "mxfp4",
    "nvfp4",
    "bitsandbytes-4bit",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """One scheme for most matrices, and the modules that keep the model's dtype.

    `ignored` holds the checkpoint's own patterns: exact names, prefixes, wildcards or `re:`
    expressions over module names such as `model.layers.0.self_attn.q_proj`.
    """

    scheme: Scheme
    block: int = 0  # rows and columns of an fp8 block, or elements of a group
    has_zero_points: bool = False
    is_static: bool = False  # activations have a stored scale as well
    ignored: tuple[str, ...] = ()
    experts_only: bool = False
    is_modelopt: bool = False  # brings scales for the cache
    is_compressed_tensors: bool = False  # same, except for latent attention
    kv_cache_dtype: KvCacheDtype | None = None
    weight_format: WeightFormat | None = None
    mixed: tuple[tuple[str, Scheme, int], ...] = ()  # module, its scheme and block; all others keep the dtype

    def __post_init__(self) -> None:
        """Have the long ones hashed once: both are keys of what is kept, looked up for every matrix."""
        object.__setattr__(self, "ignored", Hashed(self.ignored))
        object.__setattr__(self, "mixed", Hashed(self.mixed))

    def of(self, module: str) -> "Quantization":
        """Return the scheme of one module: its own in a mixed checkpoint, else the checkpoint's."""
        if not self.mixed:
            return self
        stated = _scheme_in(self.mixed, module)
        if stated is None:
            return UNQUANTIZED
        return Quantization(scheme=stated[0], block=stated[1], is_static=True, is_modelopt=self.is_modelopt)

    def keeps(self, module: str) -> bool:
        """Return whether a module stays in the model's dtype under this scheme."""
        if self.scheme == "none":
            return True
        if self.experts_only and ".experts" not in module:
            return True
        return kept(self.ignored).names(module)


UNQUANTIZED = Quantization(scheme="none")


def parse_quantization(stated: Mapping[str, object] | None) -> Quantization:
    """Return the scheme of a `quantization_config` (or of a whole `hf_quant_config.json`).

    Raises:
        UnsupportedModelError: a method without a rule, by its name.
    """
    if not stated:
        return UNQUANTIZED
    inner = stated.get("quantization")
    values = inner if is_mapping(inner) else stated
    reader = ConfigReader(values)
    method = str(reader.raw("quant_method") or "").lower()
    algorithm = str(reader.raw("quant_algo") or "").upper()
    ignored = _ignored(reader, FP8_IGNORE_NAMES if method == "fp8" else IGNORE_NAMES)
    if method in ("fp8", "awq", "gptq", "gptq_marlin", "awq_marlin", "bitsandbytes"):
        ignored = (*ignored, "lm_head")  # these loaders quantize linear layers only
    if method == "fp8":
        return _fp8(reader, ignored)
    if method == "mxfp4":
        return Quantization(scheme="mxfp4", block=32, ignored=ignored, experts_only=True, weight_format="mxfp4")
    if method in ("awq", "gptq", "gptq_marlin", "awq_marlin"):
        return _int4(reader, method, ignored)
    if method == "bitsandbytes":
        if reader.flag("load_in_8bit"):
            return Quantization(scheme="int8-channel", ignored=ignored, weight_format="int8")
        return Quantization(scheme="bitsandbytes-4bit", block=64, ignored=ignored, weight_format="int4")
    if method == "compressed-tensors" and not algorithm:
        return _compressed_tensors(reader, ignored)
    if method in ("modelopt", "modelopt_fp4", "compressed-tensors", "") and algorithm:
        return _modelopt(reader, algorithm, ignored)
    raise _unknown(method or algorithm or "nothing")


def _unknown(name: str) -> UnsupportedModelError:
    return UnsupportedModelError(
        f"there is no rule yet for the quantization {name[:80]!r}; it is not approximated",
        field="model_config.quantization_config",
        accepted="fp8, compressed-tensors, modelopt (FP8, NVFP4), awq, gptq, mxfp4, bitsandbytes",
    )


def _fp8(reader: ConfigReader, ignored: tuple[str, ...]) -> Quantization:
    block = _block(reader, "weight_block_size")
    if block:
        return Quantization(scheme="fp8-block", block=block, ignored=ignored, weight_format="fp8")
    return Quantization(
        scheme="fp8-tensor",
        is_static=reader.raw("activation_scheme") == "static",
        ignored=ignored,
        weight_format="fp8",
    )


def _int4(reader: ConfigReader, method: str, ignored: tuple[str, ...]) -> Quantization:
    bits = reader.integer("bits", "w_bit", default=4)
    if bits == 8:
        return Quantization(scheme="int8-channel", ignored=ignored, weight_format="int8")
    if bits != 4:
        raise _unknown(f"{method} with {bits} bits")
    group = reader.raw("group_size", "q_group_size")
    return Quantization(
        scheme="int4-group",
        block=group if isinstance(group, int) and group > 0 else 0,
        has_zero_points=reader.flag("zero_point", default=method.startswith("awq")),
        ignored=ignored,
        weight_format="int4",
    )


def _compressed_tensors(reader: ConfigReader, ignored: tuple[str, ...]) -> Quantization:
    groups = reader.mapping("config_groups") or {}
    first = next((it for it in groups.values() if is_mapping(it)), None)
    if ignored and "lm_head" not in ignored and not any("lm_head" in it for it in ignored):
        ignored = (*ignored, "lm_head")
    weights = ConfigReader(ConfigReader(first or {}).mapping("weights") or {})
    bits, kind = weights.integer("num_bits", default=0), str(weights.raw("type") or "")
    group = weights.raw("group_size")
    size = group if isinstance(group, int) and group > 0 else 0
    stored = Quantization(
        scheme="none",
        ignored=ignored,
        kv_cache_dtype="fp8" if reader.raw("kv_cache_scheme") else None,
        is_compressed_tensors=True,
    )
    if (bits, kind) == (8, "float"):
        return _fp8_by_strategy(weights, stored)
    if (bits, kind) == (8, "int"):
        return replace(stored, scheme="int8-channel", weight_format="int8")
    if (bits, kind) == (4, "int"):
        has_zero_points = not weights.flag("symmetric", default=True)
        return replace(stored, scheme="int4-group", block=size, has_zero_points=has_zero_points, weight_format="int4")
    if (bits, kind) == (4, "float"):
        four_bits: Literal["nvfp4", "mxfp4"] = "nvfp4" if size == 16 else "mxfp4"
        return replace(stored, scheme=four_bits, block=size or 32, weight_format=four_bits)
    raise _unknown(f"compressed-tensors with {bits} bits of {kind or 'no type'}")


def _fp8_by_strategy(weights: ConfigReader, stored: Quantization) -> Quantization:
    """Return 8-bit floats with a scale per matrix, per channel or per block."""
    match str(weights.raw("strategy") or "tensor"):
        case "block":
            block = _block(weights, "block_structure", inside="config_groups.weights.")
            return replace(stored, scheme="fp8-block", block=block, weight_format="fp8")
        case "channel":
            return replace(stored, scheme="fp8-channel", weight_format="fp8")
        case _:
            return replace(stored, scheme="fp8-tensor", weight_format="fp8")


def _block(reader: ConfigReader, name: str, inside: str = "") -> int:
    """Return the rows of an fp8 block, or 0 where none is stated.

    Raises:
        UnsupportedModelError: a length that is not above 0.
    """
    block = reader.integers(name) or ()
    if block and min(block) <= 0:
        raise unknown_kind(f"quantization_config.{inside}{name}", list(block), "rows and columns above 0")
    return block[0] if block else 0


def _modelopt(reader: ConfigReader, algorithm: str, ignored: tuple[str, ...]) -> Quantization:
    cache = str(reader.raw("kv_cache_quant_algo") or reader.raw("kv_cache_scheme") or "")
    kv_cache_dtype: KvCacheDtype | None = "fp8" if cache.upper() not in ("", "NONE") else None
    stored = Quantization(scheme="none", ignored=ignored, kv_cache_dtype=kv_cache_dtype)
    if algorithm.startswith("FP8_PER_CHANNEL"):
        return replace(stored, scheme="fp8-channel", is_modelopt=True, weight_format="fp8")
    if algorithm.startswith("FP8"):
        return replace(stored, scheme="fp8-tensor", is_static=True, weight_format="fp8")
    if algorithm in ("NVFP4", "NVFP4_AWQ"):
        return replace(stored, scheme="nvfp4", block=16, is_modelopt=True, weight_format="nvfp4")
    if algorithm == "MIXED_PRECISION":
        return _mixed(reader, kv_cache_dtype)
    raise _unknown(f"modelopt {algorithm}")


def _mixed(reader: ConfigReader, kv_cache_dtype: KvCacheDtype | None) -> Quantization:
    """Return a checkpoint whose modules have schemes of their own, by `quantized_layers`."""
    layers: list[tuple[str, Scheme, int]] = []
    for module, stated in (reader.mapping("quantized_layers") or {}).items():
        algorithm = str(ConfigReader(stated if is_mapping(stated) else {}).raw("quant_algo") or "").upper()
        if "NVFP4" in algorithm:
            layers.append((module, "nvfp4", 16))
        elif algorithm == "FP8":
            layers.append((module, "fp8-tensor", 0))
        elif algorithm == "MXFP8":
            layers.append((module, "mxfp8", 32))
        else:
            raise _unknown(f"modelopt MIXED_PRECISION with {algorithm or 'no algorithm'}")
    if not layers:
        raise _unknown("modelopt MIXED_PRECISION without quantized_layers")
    return Quantization(
        scheme="nvfp4",
        block=16,
        kv_cache_dtype=kv_cache_dtype,
        is_modelopt=True,
        weight_format="nvfp4",
        mixed=tuple(layers),
    )


FP8_IGNORE_NAMES = ("ignored_layers", "modules_to_not_convert")
IGNORE_NAMES = ("ignore", "exclude_modules", *FP8_IGNORE_NAMES, "llm_int8_skip_modules")


def _ignored(reader: ConfigReader, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first list of modules that keep the model's dtype.

    Raises:
        UnsupportedModelError: an expression in it cannot be run in linear time, or it is too long.
    """
    stated = ((name, reader.raw(name)) for name in names)
    name, entries = next(((name, value) for name, value in stated if is_list(value)), ("", ()))
    patterns = tuple(str(entry) for entry in entries)
    try:
        check_patterns(patterns)
    except UnusablePatternError as refusal:
        raise UnsupportedModelError(
            f"the config's {name}: {refusal}",
            field=f"model_config.quantization_config.{name}",
            accepted="module names, wildcards, and re: expressions without lookaround and back-references",
        ) from refusal
    return patterns


@lru_cache(maxsize=16384)
def _scheme_in(mixed: tuple[tuple[str, Scheme, int], ...], module: str) -> tuple[Scheme, int] | None:
    """Return the scheme and block of a module, or of what it is inside, under any of its names; None without."""
    stated = _mixed_schemes(mixed)
    for name in names_of(module):
        parts = name.split(".")
        for end in range(len(parts), 0, -1):
            scheme = stated.get(".".join(parts[:end]))
            if scheme is not None:
                return scheme
    return None


@lru_cache(maxsize=64)
def _mixed_schemes(mixed: tuple[tuple[str, Scheme, int], ...]) -> dict[str, tuple[Scheme, int]]:
    return {module: (scheme, block) for module, scheme, block in mixed}


def standard_quantization(weight_format: WeightFormat) -> Quantization:
    """Return the usual recipe of a format, for models without a published checkpoint in it.

    Linear layers are quantized; embeddings, output head, norms and routers keep the model's dtype.

    Sources:
        vLLM `--quantization fp8` (one scale per matrix); llm-compressor W8A8 (one scale per
        channel); AutoAWQ default (4 bits, groups of 128, zero points); OCP MX v1.0 (groups of 32)
        on experts, as gpt-oss ships; NVIDIA ModelOpt NVFP4 (groups of 16).
    """
    kept = ("lm_head", "re:.*\\.gate$", "re:.*router.*", "re:.*vision.*", "re:.*visual.*")
    match weight_format:
        case "bf16" | "fp16":
            return UNQUANTIZED
        case "fp8":
            return Quantization(scheme="fp8-tensor", ignored=kept, weight_format="fp8")
        case "int8":
            return Quantization(scheme="int8-channel", ignored=kept, weight_format="int8")
        case "int4":
            return Quantization(
                scheme="int4-group", block=128, has_zero_points=True, ignored=kept, weight_format="int4"
            )
        case "mxfp4":
            return Quantization(scheme="mxfp4", block=32, ignored=kept, weight_format="mxfp4")
        case "nvfp4":
            return Quantization(scheme="nvfp4", block=16, ignored=kept, weight_format="nvfp4")
