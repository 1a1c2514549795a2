"""GPTQ and AWQ: integers packed in groups, and which modules are stored otherwise or keep the model's dtype.

GPTQ's `dynamic` rules are expressions over a module's name, the first that matches counts: `-:` leaves it out, any
other states bits, group or symmetry of its own. AWQ's `modules_to_not_convert` are parts of names. Both meet routed
experts by the name of their block, `...mlp.experts`, and quantize the output head only where `lm_head` says so.

Sources:
    vLLM 0.33 `model_executor/layers/quantization/auto_gptq.py`, `utils/gptq_utils.py` (`get_dynamic_override`,
    `normalize_and_validate_gptq_desc_act`, `is_layer_gptq_quantized`), `auto_awq.py` (`get_quant_method`),
    `utils/quant_utils.py` (`is_layer_skipped`, `match_mode="substring"`); 0.8 to 0.22 the same in `gptq_marlin.py`,
    `awq_marlin.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from service.engine.config_reader import ConfigReader, is_list, is_mapping
from service.engine.formats.modules import MAX_EXPRESSIONS
from service.engine.formats.scheme import (
    ASYMMETRIC,
    MOST_GROUPS,
    UNQUANTIZED,
    Quantization,
    checked_patterns,
    not_stated,
    packed_as,
    unknown_scheme,
)

METHODS: Final = ("awq", "gptq", "gptq_marlin", "awq_marlin")
AWQ_NAMES: Final = (("w_bit", "bits"), ("q_group_size", "group_size"))  # as its loader looks for bits and groups
GPTQ_NAMES: Final = (("bits",), ("group_size",))
ACTIVATION_ORDER: Final = "with groups in the order of activations"
LEFT_OUT: Final = "-:"
HEAD: Final = "lm_head"
ALL_EXPERTS: Final = "*.experts*"  # a list of quantized linear layers does not speak of them
LETTERS_OF_WILDCARDS: Final = frozenset("*?[")
WHOLE_NAME: Final = 4  # parts of a matrix's full name, from a root with the number of a layer


def packed_integers(reader: ConfigReader, method: str, ignored: tuple[str, ...]) -> Quantization:
    """Return the checkpoint's scheme, in groups where rules tell modules apart.

    Args:
        reader: the `quantization_config`.
        method: GPTQ or AWQ, by one of its names.
        ignored: modules that it names as kept.

    Raises:
        MissingConfigFieldError: bits, groups, zero points, order or symmetry that are not stated, which no loader
            guesses.
        UnsupportedModelError: bits without a rule, or rules that cannot be run in linear time.
    """
    stored = replace(_stored(reader, method), names_experts_whole=True)
    kept = [] if reader.flag(HEAD) else [HEAD]
    if method.startswith("awq"):
        return replace(stored, ignored=checked_patterns([*_parts(ignored), *kept], "modules_to_not_convert"))
    rules = _rules(reader, method)
    quantized = _listed(reader)
    if not quantized and all(own is UNQUANTIZED for _, own in rules):
        left_out = (pattern for pattern, _ in rules)
        return replace(stored, ignored=checked_patterns([*ignored, *left_out, *kept], "dynamic"))
    told = [
        (checked_patterns([pattern for pattern, _ in same], "dynamic"), own)
        for own, same in groupby(rules, lambda rule: rule[1])
    ]
    if len(told) > MOST_GROUPS:
        raise unknown_scheme(f"{method} with dynamic rules in {len(told)} groups, more than {MOST_GROUPS}")
    listed = checked_patterns([*quantized, ALL_EXPERTS], "modules_in_block_to_quantize") if quantized else ("Linear",)
    return replace(stored, ignored=checked_patterns([*ignored, *kept], "ignore"), groups=(*told, (listed, stored)))


def _stored(reader: ConfigReader, method: str) -> Quantization:
    """Return how weights are stored that no rule speaks of."""
    is_awq = method.startswith("awq")
    bits, group = packed_as(reader, *(AWQ_NAMES if is_awq else GPTQ_NAMES))
    if bits not in (4, 8):
        raise unknown_scheme(f"{method} with {bits} bits")
    stored = Quantization(
        scheme="int4-group",
        method=method.removesuffix("_marlin"),
        block=group,
        weight_format="int4",
    )
    for name in ("zero_point",) if is_awq else ("desc_act", "sym"):
        if reader.raw(name) is None:
            raise not_stated(name, "does not state", "true or false")
    if is_awq:
        stored = replace(stored, has_zero_points=reader.flag("zero_point"))
    elif not reader.flag("sym"):
        stored = replace(stored, has_zero_points=True, variant=ASYMMETRIC)
    elif stored.block and reader.flag("desc_act"):
        stored = replace(stored, variant=ACTIVATION_ORDER)
    return replace(stored, scheme="int8-group", weight_format="int8") if bits == 8 else stored


def _rules(reader: ConfigReader, method: str) -> list[tuple[str, Quantization]]:
    """Return what each of the `dynamic` rules matches, as an expression, and how that is stored.

    Raises:
        UnsupportedModelError: there are too many of them.
    """
    stated = reader.mapping("dynamic") or {}
    if len(stated) > MAX_EXPRESSIONS:
        raise unknown_scheme(f"{method} with {len(stated)} dynamic rules, more than {MAX_EXPRESSIONS}")
    rules = []
    for pattern, own in stated.items():
        expression = f"re:{pattern.removeprefix(LEFT_OUT).removeprefix('+:')}"
        is_left_out = pattern.startswith(LEFT_OUT)
        apart = {} if is_left_out or not is_mapping(own) else own
        whole = UNQUANTIZED if is_left_out else _stored(reader.restated(apart), method)
        rules.append((expression, replace(whole, names_experts_whole=True) if whole is not UNQUANTIZED else whole))
    return rules


def _listed(reader: ConfigReader) -> list[str]:
    """Return parts of the names of linear layers that alone are quantized; nothing where none are listed."""
    stated = reader.raw("modules_in_block_to_quantize")
    flat: list[object] = []
    for each in stated if is_list(stated) else ():
        flat.extend(each if is_list(each) else [each])
    return _parts([str(each) for each in flat])


def _parts(names: Sequence[str]) -> list[str]:
    """Return patterns that find names anywhere in a module's; of a long list, full names as they stand.

    A long list is what a converter wrote of every layer: its names are matrices, whole.
    """
    plain = [name for name in dict.fromkeys(names) if LETTERS_OF_WILDCARDS.isdisjoint(name)]
    is_long = len(plain) > MAX_EXPRESSIONS
    return [name if is_long and _is_full(name) else f"*{name}*" for name in plain]


def _is_full(name: str) -> bool:
    """Return whether a name is one matrix's, with its root and the number of its layer."""
    parts = name.split(".")
    return len(parts) >= WHOLE_NAME and any(map(str.isdigit, parts)) and not parts[-1].isdigit()
