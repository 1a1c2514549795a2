"""torchao: what its objects of configuration make of linear layers, which the engine builds anew before it loads them.

Embeddings, the output head and routed experts keep the model's dtype: the loader speaks for linear layers alone.

    Int4WeightOnlyConfig      rows x columns / 2 + 4 per group: scale and zero point, of two bytes each; in tiles,
                              columns are filled up to a multiple of 1,024
    Int8...Config             rows x columns     + 5 per row: a scale of four bytes and a zero point of one
    Float8...Config           rows x columns     + 4 per row, or per matrix

Sources:
    vLLM 0.33 `model_executor/layers/quantization/torchao.py` (`from_config`, `should_skip`, `get_quant_method`,
    `_check_torchao_fp8_activation_capability`); torchao 0.18 `quantization/quant_api.py` (what is stored by default),
    `quantization/quantize_/workflows/` (the tensors of each).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.formats.packed import ALL_EXPERTS, HEAD
from service.engine.formats.scheme import Quantization, checked_patterns, group_length, not_stated, unknown_scheme

METHOD: Final = "torchao"
FLOAT_OF_BOTH: Final = "fp8 of both operands"  # whose kernels older GPUs lack
NAMED: Final = frozenset({"ModuleFqnToConfig", "FqnToConfig"})
OTHERS: Final = "_default"
TILES: Final = "tile_packed"
TILED_COLUMNS: Final = 1_024
USUAL_GROUP: Final = 128  # where none is stated
MOST_NAMED: Final = 256  # modules with a configuration of their own; published checkpoints have a few


def torch_ao(reader: ConfigReader) -> Quantization:
    """Return the checkpoint's scheme, in groups where modules have configurations of their own.

    Raises:
        MissingConfigFieldError: it does not say what was made of its layers.
        UnsupportedModelError: a kind without a rule, by its name.
    """
    stated = ConfigReader(reader.mapping("quant_type") or {}).mapping("default")
    if stated is None:
        raise not_stated("quant_type.default", "does not state", 'an object such as {"_type": "Int4WeightOnlyConfig"}')
    skipped = reader.raw("modules_to_not_convert")
    kept = [str(each) for each in skipped] if is_list(skipped) else []
    if stated.get("_type") not in NAMED:
        return replace(_stored(stated), ignored=_kept(kept))
    inside = ConfigReader(ConfigReader(stated).mapping("_data") or {})
    own = inside.mapping("fqn_to_config") or inside.mapping("module_fqn_to_config") or {}
    if len(own) > MOST_NAMED:
        raise unknown_scheme(f"{METHOD} of {len(own)} modules by name, more than {MOST_NAMED}")
    kept.extend(name for name, each in own.items() if each is None and name != OTHERS)
    named = [(name, _stored(each)) for name, each in own.items() if is_mapping(each) and name != OTHERS]
    others = own.get(OTHERS)
    groups = [(checked_patterns([name], "quant_type"), each) for name, each in named]
    if is_mapping(others):
        groups.append((("Linear",), _stored(others)))
    if not groups:
        raise unknown_scheme(f"{METHOD} of no module")
    return replace(groups[-1][1], ignored=_kept(kept), groups=tuple(groups))


def _kept(names: list[str]) -> tuple[str, ...]:
    """Return patterns of modules that keep the model's dtype: names that stand anywhere in a module's, whole."""
    patterns = dict.fromkeys([*names, *(f"*.{name}.*" for name in names), HEAD, ALL_EXPERTS])
    return checked_patterns([*patterns], "modules_to_not_convert")


def _stored(stated: Mapping[str, object]) -> Quantization:
    """Return what one configuration makes of a linear layer."""
    kind = str(stated.get("_type"))
    data = ConfigReader(ConfigReader(stated).mapping("_data") or {})
    match kind:
        case "Int4WeightOnlyConfig":
            group = group_length(data, "group_size") or USUAL_GROUP
            is_tiled = TILES in str(data.raw("int4_packing_format")).lower() or stated.get("_version") == 1
            return Quantization(
                scheme="int4-group",
                method=METHOD,
                block=group,
                scale_bytes=4,
                column_multiple=TILED_COLUMNS if is_tiled else 1,
                weight_format="int4",
            )
        case "Int8WeightOnlyConfig" | "Int8DynamicActivationInt8WeightConfig":
            return Quantization(
                scheme="int8-both" if kind.startswith("Int8Dynamic") else "int8-group",
                method=METHOD,
                block=group_length(data, "group_size"),
                has_zero_points=True,
                scale_bytes=4,
                weight_format="int8",
            )
        case "Float8WeightOnlyConfig":
            return Quantization(scheme="fp8-channel", method=METHOD, weight_format="fp8")
        case "Float8DynamicActivationFloat8WeightConfig":
            is_by_row = "PerRow" in str(data.raw("granularity"))
            scheme = "fp8-channel" if is_by_row else "fp8-tensor"
            return Quantization(
                scheme=scheme,  # type: ignore[arg-type]
                method=METHOD,
                variant=FLOAT_OF_BOTH,
                weight_format="fp8",
            )
        case _:
            raise unknown_scheme(f"{METHOD} {kind}")
