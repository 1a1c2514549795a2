"""What a language model's config class supplies where a wrapper's `text_config` leaves it out.

transformers writes of a nested config only what differs from its class, so publishers leave out heads, tables and
lengths that loaders then take from there. A config alone states them all, and is asked for what it lacks, but for what
other fields would seem to tell: the width of a head, and the heads of keys and values, are those of the class there.

Source:
    transformers 5.24 `models/` (the config class of each model type), through which vLLM 0.33 reads a nested config
    (`transformers_utils/config.py`); `configuration_utils.py` (`to_diff_dict`, which leaves out what equals the class).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from service.engine.config_reader import is_mapping

NESTED: Final = "text_config"
TOWER: Final = "vision_config"
NAMES: Final = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "max_position_embeddings",
)
# By the nested config's own model type, in the order of the names.
_SIZES: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType({
    "gemma": (256_000, 3_072, 24_576, 28, 16, 16, 8_192),
    "gemma2": (256_000, 2_304, 9_216, 26, 8, 4, 8_192),
    "gemma3_text": (262_208, 2_304, 9_216, 26, 8, 4, 131_072),
    "glm4": (151_552, 4_096, 13_696, 40, 32, 2, 131_072),
    "glm4v_text": (151_552, 4_096, 13_696, 40, 32, 2, 32_768),
    "lfm2": (65_536, 2_560, 12_288, 32, 32, 8, 128_000),
    "ministral3": (131_072, 4_096, 14_336, 34, 32, 8, 262_144),
    "mistral": (32_000, 4_096, 14_336, 32, 32, 8, 131_072),
    "qwen2": (151_936, 4_096, 22_016, 32, 32, 32, 32_768),
    "qwen2_5_vl_text": (152_064, 8_192, 29_568, 80, 64, 8, 32_768),
    "qwen2_vl_text": (152_064, 8_192, 29_568, 80, 64, 8, 32_768),
    "qwen3": (151_936, 4_096, 22_016, 32, 32, 32, 32_768),
    "qwen3_5_text": (248_320, 4_096, 12_288, 32, 16, 4, 32_768),
    "qwen3_vl_text": (151_936, 4_096, 22_016, 32, 32, 32, 128_000),
})  # fmt: skip
_LLAMA: Final = (32_000, 4_096, 11_008, 32, 32)  # keys and values have as many heads as are stated
_LLAMA_LENGTH: Final = 2_048
_FURTHER: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType({
    "gemma": {"head_dim": 256},
    "gemma2": {"head_dim": 256, "sliding_window": 4_096},
    "gemma3_text": {"head_dim": 256, "sliding_window": 4_096},
    "glm4": {"head_dim": 128},
    "ministral3": {"head_dim": 128},
    "mistral": {"sliding_window": 4_096},
    "qwen3": {"head_dim": 128},
    "qwen3_5_text": {"head_dim": 256},
    "qwen3_vl_text": {"head_dim": 128},
})  # fmt: skip


HEADS: Final = ("num_key_value_heads", "head_dim")  # which a reader would else take from the heads, and their width


def _supplied() -> dict[str, Mapping[str, int]]:
    """Return the fields of each model type."""
    sizes = {kind: dict(zip(NAMES, stated, strict=True)) for kind, stated in _SIZES.items()}
    sizes["llama"] = dict(zip(NAMES[:5], _LLAMA, strict=True)) | {"max_position_embeddings": _LLAMA_LENGTH}
    return {kind: MappingProxyType({**stated, **_FURTHER.get(kind, {})}) for kind, stated in sizes.items()}


SUPPLIED: Final[Mapping[str, Mapping[str, int]]] = MappingProxyType(_supplied())


# Of towers, by their own model type: layers whose outputs are stacked on the language model's.
STACKED: Final = "deepstack_visual_indexes"
STACKED_LAYERS: Final[Mapping[str, tuple[int, ...]]] = MappingProxyType(
    dict.fromkeys(("qwen3_vl", "qwen3_vl_vision", "qwen3_vl_moe", "qwen3_vl_moe_vision"), (8, 16, 24))
)


def with_supplied(config: Mapping[str, object]) -> Mapping[str, object]:
    """Return a config whose nested parts state what their classes supply.

    The language model's does so where neither it nor the wrapper says; without a wrapper, of its heads alone.

    >>> pixtral = {"text_config": {"model_type": "mistral", "hidden_size": 5_120}}
    >>> nested = with_supplied(pixtral)["text_config"]
    >>> nested["num_attention_heads"], nested["num_key_value_heads"], nested["hidden_size"]
    (32, 8, 5120)
    >>> with_supplied({"model_type": "qwen3", "hidden_size": 5_120})["head_dim"]  # not 5,120 / 64 heads
    128
    """
    config, text = _with_stacks(config), config.get(NESTED)
    if text is None:
        of_class = SUPPLIED.get(str(config.get("model_type")), {})
        heads = {name: of_class[name] for name in HEADS if name in of_class and name not in config}
        return {**heads, **config} if heads else config
    supplied = SUPPLIED.get(str(text.get("model_type"))) if is_mapping(text) else None
    if supplied is None or not is_mapping(text):
        return config
    left_out = {name: size for name, size in supplied.items() if name not in text and config.get(name) is None}
    return {**config, NESTED: {**left_out, **text}} if left_out else config


def _with_stacks(config: Mapping[str, object]) -> Mapping[str, object]:
    """Return a config whose tower says which layers are stacked, where its class does."""
    tower = config.get(TOWER)
    layers = STACKED_LAYERS.get(str(tower.get("model_type"))) if is_mapping(tower) else None
    if layers is None or not is_mapping(tower) or STACKED in tower:
        return config
    return {**config, TOWER: {STACKED: list(layers), **tower}}
