"""AMD Quark: one way of storing weights for all linear layers, others by the names of layers, some kept whole.

Source:
    vLLM 0.33 `model_executor/layers/quantization/quark/quark.py` (`from_config`, `_find_matched_config`,
    `_get_scheme_cls_from_config`), `quark/utils.py` (`should_ignore_layer`: names and `re:` expressions).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.formats.scheme import Quantization, Scheme, checked_patterns, group_length, unknown_scheme
from service.engine.inputs import WeightFormat

METHOD: Final = "quark"
FORMATS: Final[Mapping[Scheme, WeightFormat]] = {
    "fp8-tensor": "fp8",
    "fp8-channel": "fp8",
    "fp8-block": "fp8",
    "int8-both": "int8",
    "int8-group": "int8",
    "int4-group": "int4",
    "mxfp4": "mxfp4",
    "nvfp4": "nvfp4",
}
ROWS_FIXED: Final = "experts of fp8 with one scale a row and fixed scales of activations"


def quark(reader: ConfigReader) -> Quantization:
    """Return the checkpoint's scheme, in groups where layers have their own.

    Raises:
        UnsupportedModelError: weights of a kind without a rule, by its types.
    """
    stored = _stored(reader.mapping("global_quant_config") or {})
    groups: dict[Quantization, list[str]] = {}
    for name, own in (reader.mapping("layer_quant_config") or {}).items():
        if is_mapping(own) and (other := _stored(own)) != stored:
            groups.setdefault(other, []).append(name)
    if groups:
        told = tuple((checked_patterns(names, "layer_quant_config"), other) for other, names in groups.items())
        stored = replace(stored, groups=(*told, (("Linear",), stored)))
    excluded = reader.raw("exclude")
    kept = [str(each) for each in excluded] if is_list(excluded) else []
    named = [each for each in kept if each.startswith("re:") or "*" not in each]
    return replace(stored, ignored=checked_patterns(["lm_head", *named], "exclude"))


def _stored(group: Mapping[str, object]) -> Quantization:
    """Return how one group's weights are stored."""
    weights, activations = _entries(group.get("weight")), _entries(group.get("input_tensors"))
    kinds = [str(each.raw("dtype")) for each in weights]
    scheme, block = _scheme(weights, kinds, is_of_both=bool(activations))
    is_fixed = bool(activations) and not activations[0].flag("is_dynamic")
    return Quantization(
        scheme=scheme,
        method=METHOD,
        block=block,
        expert_variant=ROWS_FIXED if scheme == "fp8-channel" and is_fixed else "",
        has_zero_points=scheme == "int4-group" and not weights[0].flag("symmetric", default=True),
        is_static=is_fixed and scheme.startswith("fp8"),
        weight_format=FORMATS[scheme],
    )


def _entries(stated: object) -> list[ConfigReader]:
    """Return what is stated of weights or activations: nothing, one entry, or one for values and one for scales."""
    entries = stated if is_list(stated) else [stated]
    return [ConfigReader(each) for each in entries if is_mapping(each)]


def _scheme(weights: list[ConfigReader], kinds: list[str], *, is_of_both: bool) -> tuple[Scheme, int]:
    """Return the scheme of weights, and its block or group. [elements]."""
    way, size = (str(weights[0].raw("qscheme")), group_length(weights[0], "group_size")) if weights else ("", 0)
    match kinds, way, size:
        case ["fp8_e4m3"], "per_tensor", _:
            return "fp8-tensor", 0
        case ["fp8_e4m3"], "per_channel", _:
            return "fp8-channel", 0
        case ["fp8_e4m3"], "per_block", _ if list(weights[0].integers("block_size") or ()) == [128, 128]:
            return "fp8-block", 128
        case ["int8"], "per_tensor" | "per_channel", _:
            return "int8-both" if is_of_both else "int8-group", 0
        case ["int4" | "uint4"], "per_group", _ if size:
            return "int4-group", size
        case ["fp4"], "per_group", 32:
            return "mxfp4", 32
        case ["fp4", "fp8_e4m3"], "per_group", 16:
            return "nvfp4", 16
        case _:
            raise unknown_scheme(f"{METHOD} with {' and '.join(kinds) or 'whole weights'} {way}".strip())
