"""Whose integers a name says: GPTQ's, AutoRound's, llm-compressor's; each as its makers write it into a config.

    GPTQ                    4 or 8 bits of weights in groups of 128, symmetric
    AutoRound               the same, in another packing
    W4A16, W8A16            4 bits in groups of 128, 8 with one scale a row, symmetric; since May 2026 in groups as well
    AWQ of 8 bits           in groups of 32, symmetric; of 4 by cyankiwi, who was cpatonn, with zero points
    bitsandbytes            blocks of 64
    W8A8                    both operands, one scale a row and one a token

Of 4 bits, AWQ by others is AutoAWQ's: the format's usual recipe.

Sources:
    config.json of Qwen/Qwen3-0.6B-GPTQ-Int8 and -30B-A3B-GPTQ-Int4 (`group_size` 128, `sym`, no `desc_act`), of
    Intel/GLM-5.3-Flash-W4A16-AutoRound (`auto_round:auto_gptq`, symmetric, 128), canada-quant/hy3-w4a16-mtp
    (pack-quantized, symmetric, 128), cyankiwi/gemma-4-31B-it-AWQ-8bit (pack-quantized, symmetric, 32) and
    Muse-Glimmer-30B-AWQ-INT4 (the same, 4 bits, asymmetric). Presets of github.com/vllm-project/compressed-tensors:
    pull requests 94 (W4A16) and 702 (W8A16, a row each until May 2026).
    Of models with states attention of both kinds, shared experts, draft layers and towers stay in 16 bits: config.json
    of Qwen/Qwen3.5-27B-GPTQ-Int4 and of its siblings (35B-A3B, 122B-A10B, 397B-A17B).
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from service.engine.formats.quantization import Quantization, parse_quantization, standard_quantization
from service.engine.inputs import WeightFormat

Recipe = Literal["bitsandbytes", "gptq", "auto-round", "weights alone", "small groups", "both operands"]

INTEGERS: Final[Mapping[WeightFormat, int]] = {"int4": 4, "int8": 8}
# The first of these that a name says; what AutoRound packed for another loader is that loader's.
SAID_AS: Final[Mapping[str, Recipe]] = {
    "w8a8": "both operands",  # found by GPTQ or not
    "bnb": "bitsandbytes", "bitsandbytes": "bitsandbytes",
    "gptq": "gptq", "gptqmodel": "gptq", "autogptq": "gptq",
    "autoround": "auto-round",
    "w4a16": "weights alone", "w8a16": "weights alone",
}  # fmt: skip
AWQ: Final = frozenset({"awq", "autoawq"})
OF_SMALL_GROUPS: Final = frozenset({"cyankiwi", "cpatonn", "cpatonn-mirror"})
HYBRID: Final = ("attn", "shared_expert", "mtp", "visual")  # parts of names, of what models with states keep
KEPT: Final = ("visual", "vision", "router")


def recipe_of(words: Iterable[str], publisher: str, weight_format: WeightFormat) -> Recipe | None:
    """Return whose integers the words of a name say; None where they say none's, or the format's usual ones.

    >>> recipe_of(("qwen", "2.5", "7b", "awq", "8bit"), "cyankiwi", "int8")
    'small groups'
    >>> recipe_of(("qwen", "3", "8b", "awq"), "qwen", "int4")
    """
    said = frozenset(words)
    if weight_format not in INTEGERS:
        return None
    if said & AWQ:
        return "small groups" if weight_format == "int8" or publisher in OF_SMALL_GROUPS else None
    return next((recipe for word, recipe in SAID_AS.items() if word in said), None)


def stored_by(recipe: Recipe, weight_format: WeightFormat, *, is_hybrid: bool) -> Quantization:
    """Return how a recipe stores the matrices of a model.

    Args:
        recipe: whose integers.
        weight_format: of 4 or of 8 bits.
        is_hybrid: the model has layers with states beside those with a cache. [yes or no]
    """
    bits = INTEGERS[weight_format]
    match recipe:
        case "bitsandbytes":
            return parse_quantization({"quant_method": "bitsandbytes", f"load_in_{bits}bit": True})
        case "gptq":
            left_out: dict[str, object] = {f"-:.*{part}.*": {} for part in (HYBRID if is_hybrid else KEPT)}
            packed = {"bits": bits, "group_size": 128, "desc_act": False, "sym": True}
            return parse_quantization({"quant_method": "gptq", **packed, "dynamic": left_out})
        case "auto-round":
            kept = {f".*{part}.*": {"bits": 16} for part in KEPT}
            packed = {"bits": bits, "group_size": 128, "sym": True}
            return parse_quantization({"quant_method": "auto-round", **packed, "extra_config": kept})
        case "weights alone":
            return _packed(bits, 0 if bits == max(INTEGERS.values()) else 128, is_symmetric=True)
        case "small groups":
            return _packed(bits, 32, is_symmetric=bits == max(INTEGERS.values()))
        case "both operands":
            return standard_quantization(weight_format)


def _packed(bits: int, group: int, *, is_symmetric: bool) -> Quantization:
    """Return integers as compressed-tensors packs them: in groups, or with one scale a row."""
    strategy = {"strategy": "group", "group_size": group} if group else {"strategy": "channel"}
    weights = {"num_bits": bits, "type": "int", "symmetric": is_symmetric, **strategy}
    return parse_quantization(
        {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
            "ignore": ["lm_head", *(f"re:.*{part}.*" for part in KEPT), "re:.*\\.gate$"],
        }
    )
