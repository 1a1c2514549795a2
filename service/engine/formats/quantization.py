"""How a checkpoint stores its weights: one closed description of every published scheme.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/` (each scheme's `create_weights`),
    `utils/quant_utils.py` (`is_layer_skipped`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import translate
from functools import lru_cache
from typing import Literal

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.errors import UnsupportedModelError
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

    def of(self, module: str) -> "Quantization":
        """Return the scheme of one module: its own in a mixed checkpoint, else the checkpoint's."""
        if not self.mixed:
            return self
        stated = _mixed_schemes(self.mixed)
        for name in _names(module):
            parts = name.split(".")
            for end in range(len(parts), 0, -1):
                found = stated.get(".".join(parts[:end]))
                if found is not None:
                    return Quantization(scheme=found[0], block=found[1], is_static=True, is_modelopt=self.is_modelopt)
        return UNQUANTIZED

    def keeps(self, module: str) -> bool:
        """Return whether a module stays in the model's dtype under this scheme."""
        if self.scheme == "none":
            return True
        if self.experts_only and ".experts" not in module:
            return True
        return any(_is_ignored(self.ignored, name) for name in _names(module))


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
    block = reader.integers("weight_block_size")
    if block:
        return Quantization(scheme="fp8-block", block=block[0], ignored=ignored, weight_format="fp8")
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
    strategy = str(weights.raw("strategy") or "tensor")
    kv_cache_dtype: KvCacheDtype | None = "fp8" if reader.raw("kv_cache_scheme") else None
    group = weights.raw("group_size")
    size = group if isinstance(group, int) and group > 0 else 0
    if (bits, kind) == (8, "float"):
        scheme: Scheme = {"block": "fp8-block", "channel": "fp8-channel"}.get(strategy, "fp8-tensor")  # type: ignore[assignment]
        block = weights.integers("block_structure") if strategy == "block" else None
        return Quantization(
            scheme=scheme,
            block=block[0] if block else 0,
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            is_compressed_tensors=True,
            weight_format="fp8",
        )
    if (bits, kind) == (8, "int"):
        return Quantization(
            scheme="int8-channel",
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            is_compressed_tensors=True,
            weight_format="int8",
        )
    if (bits, kind) == (4, "int"):
        return Quantization(
            scheme="int4-group",
            block=size,
            has_zero_points=not weights.flag("symmetric", default=True),
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            is_compressed_tensors=True,
            weight_format="int4",
        )
    if (bits, kind) == (4, "float"):
        nvfp4 = size == 16
        return Quantization(
            scheme="nvfp4" if nvfp4 else "mxfp4",
            block=size or 32,
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            is_compressed_tensors=True,
            weight_format="nvfp4" if nvfp4 else "mxfp4",
        )
    raise _unknown(f"compressed-tensors with {bits} bits of {kind or 'no type'}")


def _modelopt(reader: ConfigReader, algorithm: str, ignored: tuple[str, ...]) -> Quantization:
    cache = str(reader.raw("kv_cache_quant_algo") or reader.raw("kv_cache_scheme") or "")
    kv_cache_dtype: KvCacheDtype | None = "fp8" if cache.upper() not in ("", "NONE") else None
    if algorithm.startswith("FP8_PER_CHANNEL"):
        return Quantization(
            scheme="fp8-channel", ignored=ignored, kv_cache_dtype=kv_cache_dtype, is_modelopt=True, weight_format="fp8"
        )
    if algorithm.startswith("FP8"):
        return Quantization(
            scheme="fp8-tensor",
            is_static=True,
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            weight_format="fp8",
        )
    if algorithm in ("NVFP4", "NVFP4_AWQ"):
        return Quantization(
            scheme="nvfp4",
            block=16,
            ignored=ignored,
            kv_cache_dtype=kv_cache_dtype,
            is_modelopt=True,
            weight_format="nvfp4",
        )
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
    for name in names:
        value = reader.raw(name)
        if is_list(value):
            return tuple(str(it) for it in value)
    return ()


@lru_cache(maxsize=64)
def _mixed_schemes(mixed: tuple[tuple[str, Scheme, int], ...]) -> dict[str, tuple[Scheme, int]]:
    return {module: (scheme, block) for module, scheme, block in mixed}


# Names that checkpoints of other families give to the same modules.
_OTHER_ROOTS = ("language_model.model.layers", "model.language_model.layers", "backbone.layers")
_OTHER_PARTS = (
    (".mlp.", ".block_sparse_moe."),
    (".mlp.", ".mixer."),
    (".mlp.", ".feed_forward."),
    (".self_attn.", ".mixer."),
    ("shared_experts", "shared_expert"),
    ("experts.gate_up_proj", "experts.0.gate_proj"),
    ("mlp.experts.gate_up_proj", "mixer.experts.0.up_proj"),
    ("mlp.experts.down_proj", "mixer.experts.0.down_proj"),
    ("mlp.shared_experts", "mixer.shared_experts"),
    ("mlp.experts.gate_up_proj", "block_sparse_moe.experts.0.w1"),
    ("mlp.experts.down_proj", "block_sparse_moe.experts.0.w2"),
)


@lru_cache(maxsize=65536)
def _names(module: str) -> tuple[str, ...]:
    """Return the module's name and what other families call it."""
    if module == "lm_head":
        return module, "language_model.lm_head"
    parts = [module, *(module.replace(ours, theirs, 1) for ours, theirs in _OTHER_PARTS if ours in module)]
    roots = [name.replace("model.layers", root, 1) for root in _OTHER_ROOTS for name in parts]
    return *parts, *roots


@lru_cache(maxsize=256)
def _matchers(ignored: tuple[str, ...]) -> tuple[frozenset[str], re.Pattern[str] | None, tuple[re.Pattern[str], ...]]:
    """Split patterns into exact names, wildcards (all in one) and expressions."""
    expressions: list[re.Pattern[str]] = []
    wildcards: list[str] = []
    exact: set[str] = set()
    for pattern in ignored:
        if pattern.startswith("re:"):
            try:
                expressions.append(re.compile(pattern[3:]))
            except re.error:
                continue  # the engine would fail to load it; nothing is ignored by it
        elif "*" in pattern:
            wildcards.append(pattern)
        else:
            exact.add(pattern)
    joined = re.compile("|".join(translate(it) for it in wildcards)) if wildcards else None
    return frozenset(exact), joined, tuple(expressions)


def _is_ignored(ignored: tuple[str, ...], module: str) -> bool:
    exact, wildcards, expressions = _matchers(ignored)
    parts = module.split(".")
    prefixes = {".".join(parts[:end]) for end in range(1, len(parts) + 1)}
    if exact & prefixes or parts[-1] in exact:
        return True
    if wildcards is not None and any(wildcards.match(prefix) for prefix in prefixes):
        return True
    return any(pattern.match(module) for pattern in expressions)


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
