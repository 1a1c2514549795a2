"""compressed-tensors: groups of layers, each with a scheme of its own, named by targets.

Source:
    vLLM 0.33 `model_executor/layers/quantization/compressed_tensors/compressed_tensors.py` (`from_config`,
    `get_scheme_dict`), `compressed_tensors/utils.py` (`find_matched_target`), `compressed_tensors_moe/`
    (`get_moe_method`).
"""

from collections.abc import Mapping
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.formats.scheme import (
    LINEAR_CLASSES,
    MOST_GROUPS,
    MX_GROUP,
    NVFP4_GROUP,
    UNQUANTIZED,
    Quantization,
    Scheme,
    block_length,
    checked_patterns,
    group_length,
    unknown_scheme,
)
from service.engine.inputs import DeclaredCacheDtype

FLOAT_STRATEGIES: Final[Mapping[str, Scheme]] = {"block": "fp8-block", "channel": "fp8-channel"}
METHOD: Final = "compressed-tensors"
FP8_BESIDE: Final = "int4 beside activations of fp8"
FP8_BESIDE_GROUP: Final = 128
FP8_SCALE_BYTES: Final = 8  # of a group, once loaded
# Variants of experts, as a refusal calls them.
FLOATS_ALONE: Final = "experts of fp8 without quantized activations"
FIXED_SCALES: Final = "experts of int8 whose activations are not scaled token by token"
UNPACKED: Final = "experts of integers that are not packed in rows or groups"
ROWS: Final = "experts of integers with one scale a row"


def compressed_tensors(reader: ConfigReader, ignored: tuple[str, ...]) -> Quantization:
    """Return the checkpoint's scheme: one for all linear layers, or each group's for what its targets match.

    Raises:
        UnsupportedModelError: weights of a kind without a rule, by its bits and type.
    """
    _check_sparsity(reader)
    if ignored and "lm_head" not in ignored and not any("lm_head" in name for name in ignored):
        ignored = (*ignored, "lm_head")
    kv_cache_dtype: DeclaredCacheDtype | None = "fp8" if reader.raw("kv_cache_scheme") else None
    packing = str(reader.raw("format") or "")
    groups = [each for each in (reader.mapping("config_groups") or {}).values() if is_mapping(each)]
    if len(groups) > MOST_GROUPS:
        raise unknown_scheme(f"compressed-tensors in {len(groups)} groups, more than {MOST_GROUPS}")
    targeted = [(targets, group) for group in groups if (targets := _targets(group))]
    if len(groups) > 1 or any(set(targets).difference(LINEAR_CLASSES) for targets, _ in targeted):
        stored = tuple((targets, _group(group, (), None, packing)) for targets, group in targeted)
        return _of_most(stored, ignored, kv_cache_dtype)
    return _group(groups[0] if groups else {}, ignored, kv_cache_dtype, packing)


def _of_most(
    stored: tuple[tuple[tuple[str, ...], Quantization], ...],
    ignored: tuple[str, ...],
    kv_cache_dtype: DeclaredCacheDtype | None,
) -> Quantization:
    """Return a checkpoint of several groups, named after the one with the smallest weights."""
    if not stored:
        return UNQUANTIZED
    first = min((scheme for _, scheme in stored), key=lambda each: each.scheme not in ("nvfp4", "mxfp4", "int4-group"))
    return Quantization(
        scheme=first.scheme,
        method=METHOD,
        block=first.block,
        ignored=ignored,
        kv_cache_dtype=kv_cache_dtype,
        is_compressed_tensors=True,
        weight_format=first.weight_format,
        groups=stored,
    )


def _targets(group: Mapping[str, object]) -> tuple[str, ...]:
    """Return what a group speaks for; attention's own belongs to the cache. Without targets, every linear layer."""
    stated = group.get("targets")
    targets = checked_patterns([str(each) for each in stated] if is_list(stated) else (), "config_groups.targets")
    if len(targets) == 1 and targets[0].endswith("Attention"):
        return ()
    return targets or ("Linear",)


def _group(
    group: Mapping[str, object], ignored: tuple[str, ...], kv_cache_dtype: DeclaredCacheDtype | None, packing: str
) -> Quantization:
    """Return how one group's weights are stored; `packing` is the format of the whole checkpoint."""
    weights = ConfigReader(ConfigReader(group).mapping("weights") or {})
    bits, kind = weights.integer("num_bits", default=0), str(weights.raw("type") or "")
    size = group_length(weights, "group_size", inside="config_groups.weights.")
    has_activations = is_mapping(group.get("input_activations"))
    scheme, block = _scheme(weights, bits, kind, size, is_of_both=has_activations)
    is_fp8_beside = scheme == "int4-group" and has_activations
    if is_fp8_beside:
        _check_fp8_beside(group, weights, size)
    formats = {"fp8": "fp8", "int8": "int8", "int4": "int4", "nvfp4": "nvfp4", "mxfp4": "mxfp4", "mxfp8": "fp8"}
    return Quantization(
        scheme=scheme,
        method=METHOD,
        variant=FP8_BESIDE if is_fp8_beside else "",
        expert_variant=_expert_variant(scheme, group, str(group.get("format") or packing)),
        block=block,
        has_zero_points=scheme == "int4-group" and not weights.flag("symmetric", default=True),
        scale_bytes=FP8_SCALE_BYTES if is_fp8_beside else 0,
        has_row_scales=is_fp8_beside,
        ignored=ignored,
        kv_cache_dtype=kv_cache_dtype,
        is_compressed_tensors=True,
        weight_format=formats[scheme.split("-", 1)[0]],  # type: ignore[arg-type]
    )


def _check_fp8_beside(group: Mapping[str, object], weights: ConfigReader, size: int) -> None:
    """Raise UnsupportedModelError for integers of 4 bits beside activations that no GPU's kernel multiplies them with.

    The one there is takes fp8 that is scaled token by token, and symmetric weights in groups of 128. The loader spreads
    each group's scale of one byte over eight, and makes one of four bytes for each row.

    Source:
        vLLM 0.33 `compressed_tensors.py` (`_is_fp8_w4a8`), `schemes/compressed_tensors_w4a8_fp8.py`,
        `kernels/linear/mixed_precision/cutlass.py` (`cutlass_pack_scale_fp8`).
    """
    activations = ConfigReader(ConfigReader(group).mapping("input_activations") or {})
    is_by_token = activations.raw("strategy") == "token" and activations.flag("dynamic")
    is_fp8 = activations.raw("num_bits") == 8 and activations.raw("type") == "float"
    if not (is_by_token and is_fp8 and weights.flag("symmetric", default=True) and size == FP8_BESIDE_GROUP):
        kind = f"{activations.raw('num_bits')} bits of {activations.raw('type')}"
        raise unknown_scheme(f"compressed-tensors with 4 bits of int beside activations of {kind}")


def _scheme(weights: ConfigReader, bits: int, kind: str, size: int, *, is_of_both: bool) -> tuple[Scheme, int]:
    """Return the scheme of weights of so many bits, and its block or group. [elements]."""
    match bits, kind:
        case 8, "float":
            strategy = str(weights.raw("strategy") or "tensor")
            if strategy == "group":
                return _mxfp8(size)
            block = block_length(weights, "block_structure", "config_groups.weights.") if strategy == "block" else 0
            return FLOAT_STRATEGIES.get(strategy, "fp8-tensor"), block
        case 8, "int":
            return "int8-both" if is_of_both else "int8-group", size
        case 4, "int":
            return "int4-group", size
        case 4, "float":
            if size not in (NVFP4_GROUP, MX_GROUP, 0):
                raise unknown_scheme(f"compressed-tensors with 4 bits of float in groups of {size}")
            return ("nvfp4", size) if size == NVFP4_GROUP else ("mxfp4", MX_GROUP)
        case _:
            raise unknown_scheme(f"compressed-tensors with {bits} bits of {kind or 'no type'}")


def _expert_variant(scheme: Scheme, group: Mapping[str, object], packing: str) -> str:
    """Return what the engine's kernels for experts tell apart in a group, or do not run."""
    weights = ConfigReader(ConfigReader(group).mapping("weights") or {})
    activations = ConfigReader(group).mapping("input_activations")
    strategy = str(weights.raw("strategy") or ("group" if weights.raw("group_size") else "tensor"))
    if scheme.startswith("fp8"):
        return "" if activations is not None else FLOATS_ALONE
    if not scheme.startswith("int") or (scheme == "int4-group" and activations is not None):
        return ""
    if activations is not None:
        stated = ConfigReader(activations)
        return "" if stated.flag("dynamic") and stated.raw("strategy") == "token" else FIXED_SCALES
    if packing != "pack-quantized" or strategy == "tensor":
        return UNPACKED
    return ROWS if strategy == "channel" else ""


def _mxfp8(size: int) -> tuple[Scheme, int]:
    """Return fp8 weights with a scale for each group, which is MXFP8's of 32. [elements]."""
    if size != MX_GROUP:
        raise unknown_scheme(f"compressed-tensors with 8 bits of float in groups of {size}")
    return "mxfp8", size


def _check_sparsity(reader: ConfigReader) -> None:
    """Raise UnsupportedModelError for weights of which only two in four are stored.

    Sources:
        vLLM pull request 36799 (0.19: no longer loaded); vLLM 0.33 `compressed_tensors.py` (`_parse_sparsity_config`).
    """
    sparsity = ConfigReader(reader.mapping("sparsity_config") or {})
    if reader.raw("format") == "marlin-24" or sparsity.raw("targets"):
        raise unknown_scheme("compressed-tensors with sparse weights, which vLLM loads no more since 0.19")
