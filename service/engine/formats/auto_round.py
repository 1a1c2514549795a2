"""AutoRound: integers packed as GPTQ's or AWQ's, in the blocks it names, with modules that are stored otherwise.

Source:
    vLLM 0.33 `model_executor/layers/quantization/inc/` (`INCConfig.from_config`, `INCConfigParser`: names, then
    expressions; `INCWNA16LinearScheme`, `inc_mxfp4_scheme.py`, `inc_mxfp8_linear.py`, `inc_fp8_scheme.py`: fp8 in
    blocks of linear layers alone).
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.formats.scheme import (
    ASYMMETRIC,
    MX_GROUP,
    Quantization,
    Scheme,
    block_length,
    checked_patterns,
    packed_as,
    unknown_scheme,
)
from service.engine.inputs import WeightFormat

METHOD: Final = "auto-round"
NAMES: Final = (("bits",), ("group_size",))
PACKINGS: Final = ("auto_round:auto_gptq", "auto_round:auto_awq")
FP8_PACKING: Final = "auto_round:fp8"
MX_PACKING: Final = "auto_round:llm_compressor"
MX: Final[Mapping[int, tuple[Scheme, WeightFormat]]] = {4: ("mxfp4", "mxfp4"), 8: ("mxfp8", "fp8")}  # by bits
BLOCKED_EXPERTS: Final = "experts of fp8 in blocks"
WHOLE_BITS: Final = 16  # from which on a module keeps the model's dtype
EXPRESSION: Final = re.compile(r"[*+?^$()\[\]{}|\\]")  # a letter that makes a name an expression


def auto_round(reader: ConfigReader) -> Quantization:
    """Return the checkpoint's scheme, in groups where modules or blocks are told apart.

    Raises:
        MissingConfigFieldError: bits or groups that are not stated, which no loader guesses.
        UnsupportedModelError: bits, types or packings without a rule.
    """
    stored = _stored(reader, {})
    apart = reader.mapping("extra_config") or {}
    kept: list[str] = [] if "lm_head" in apart else ["lm_head"]
    groups: dict[Quantization, list[str]] = {}
    for name, stated in apart.items():
        own = stated if is_mapping(stated) else {}
        if packed_as(reader.restated(own), *NAMES)[0] >= WHOLE_BITS:
            kept.append(_pattern(name))
        elif (other := _stored(reader, own)) != stored:
            groups.setdefault(other, []).append(_pattern(name))
    blocks = _blocks(reader)
    if groups or blocks:
        told = tuple((checked_patterns(names, "extra_config"), other) for other, names in groups.items())
        stored = replace(stored, groups=(*told, (blocks or ("Linear",), stored)))
    return replace(stored, ignored=checked_patterns(kept, "extra_config"))


def _stored(reader: ConfigReader, own: Mapping[str, object]) -> Quantization:
    """Return how weights are stored, by what a module states of its own and the whole checkpoint otherwise."""
    stated, kind = reader.restated(own), str(reader.raw("data_type") or "int").replace("fp8", "fp")
    if kind == "fp" and is_list(stated.raw("group_size")):
        return _blocked(stated)
    bits, group = packed_as(stated, *NAMES)
    packing = str(reader.raw("packing_format") or "")
    if "mx_fp" in kind and bits in MX and packing in ("", MX_PACKING):
        scheme, weight_format = MX[bits]
        return Quantization(scheme=scheme, method=METHOD, block=MX_GROUP, weight_format=weight_format)
    if kind != "int" or (packing or PACKINGS[0]) not in PACKINGS or bits not in (4, 8):
        raise unknown_scheme(f"{METHOD} with {bits} bits of {kind} {packing}".strip())
    is_symmetric = stated.flag("sym", default=True)
    plain = Quantization(
        scheme="int4-group",
        method=METHOD,
        block=group,
        has_zero_points=not is_symmetric,
        weight_format="int4",
    )
    if not is_symmetric and packing != PACKINGS[1]:
        plain = replace(plain, variant=ASYMMETRIC)
    return plain if bits == 4 else replace(plain, scheme="int8-group", weight_format="int8")


def _blocked(stated: ConfigReader) -> Quantization:
    """Return fp8 with one scale for each block, which the engine does not run in experts."""
    if stated.raw("bits") != WHOLE_BITS // 2 or stated.raw("packing_format") not in (None, FP8_PACKING):
        raise unknown_scheme(
            f"{METHOD} with {stated.raw('bits')} bits of fp {stated.raw('packing_format') or ''}".strip()
        )
    return Quantization(
        scheme="fp8-block",
        method=METHOD,
        block=block_length(stated, "group_size"),
        expert_variant=BLOCKED_EXPERTS,
        weight_format="fp8",
    )


def _pattern(name: str) -> str:
    """Return a module's name as it stands, or the expression that finds it anywhere in one."""
    return f"re:.*{name}" if EXPRESSION.search(name) else name


def _blocks(reader: ConfigReader) -> tuple[str, ...]:
    """Return what the names of quantized modules begin with, where blocks are stated: towers are named for themselves.

    The layers of the language model are meant whatever their root, unless a single one is named.
    """
    stated = reader.raw("block_name_to_quantize", "to_quant_block_names")
    names = stated if is_list(stated) else str(stated or "").split(",")
    blocks: set[str] = set()
    for name in map(str, names):
        if "vis" in name:
            blocks.add("visual*")
        elif name:
            blocks.add(f"{name}*" if name.rsplit(".", 1)[-1].isdigit() else "model.layers*")
    return checked_patterns(sorted(blocks), "block_name_to_quantize")
