"""The longest context that engines derive from a config."""

from collections.abc import Collection, Mapping

from service.engine.config_reader import ConfigReader, is_mapping

LENGTH_NAMES = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)
# The same for other engines, in the order of SGLang; `n_positions` is what GPT-2 calls the last of them.
PLAIN_NAMES = (
    "max_sequence_length",
    "seq_length",
    "max_seq_len",
    "model_max_length",
    "max_position_embeddings",
    "n_positions",
)
# What the engine assumes when a config states no length at all. [tokens]
UNSTATED_LENGTH = 2048
UNBOUNDED_LENGTH = 1 << 31  # and what it accepts then
YARN = ("yarn", "telechat3-yarn")
# Rope types whose config already states the scaled length.
ALREADY_SCALED = frozenset(
    {
        "su",
        "longrope",
        "llama3",
        "yarn",
        "deepseek_yarn",
        "deepseek_llama_scaling",
        "mrope",
        "default",
        "telechat3-yarn",
    }
)


def context_lengths(reader: ConfigReader, unscaled_types: Collection[str]) -> tuple[int, int]:
    """Return the longest context a model accepts, and the one it starts with unasked. [tokens].

    The smallest stated length, times the factor of a rope scaling that is not already in it. YaRN is: who adds it to a
    config states the longer length as well. LongRoPE models start at their original length, to keep short prompts
    accurate.

    Args:
        reader: the language model's part of a config.
        unscaled_types: what is part of the model types whose configs state the scaled length already.

    Sources:
        vLLM 0.33 `config/model.py` (`_get_and_verify_max_len`) and
        `transformers_utils/model_arch_config_convertor.py` (`derive_max_model_len_and_key`).
    """
    stated = [reader.positive(name) for name in LENGTH_NAMES if reader.raw(name) is not None]
    length = reader.optional("model_max_length") or min(stated, default=UNSTATED_LENGTH)
    if not stated:
        return UNBOUNDED_LENGTH, UNSTATED_LENGTH
    model_type = str(reader.raw("model_type") or "")
    if any(part in model_type for part in unscaled_types):
        return length, length
    factor = 1.0
    unasked: int | None = None
    for parameters in _rope_parameters(reader):
        rope = ConfigReader(parameters)
        kind = str(rope.raw("rope_type", "type") or "default")
        if kind == "longrope":
            unasked = reader.optional("original_max_position_embeddings") or None
        elif kind not in ALREADY_SCALED:
            factor = rope.number("factor", default=factor) or 1.0
    longest = max(int(length * factor), 1)
    return longest, min(unasked or longest, longest)


def former_context(reader: ConfigReader, unscaled_types: Collection[str]) -> int:
    """Return what vLLM before 0.30 made of YaRN: its original length times its factor; 0 of other scalings. [tokens].

    32,768 x 4 = 131,072 where Qwen's cards have readers add it, whatever the config states.

    Source: vLLM 0.29 and 0.30 `config/model.py` (`_get_and_verify_max_len`).
    """
    is_stated = any(reader.raw(name) is not None for name in LENGTH_NAMES)
    if not is_stated or any(part in str(reader.raw("model_type") or "") for part in unscaled_types):
        return 0
    reached = 0
    for parameters in _rope_parameters(reader):
        rope = ConfigReader(parameters)
        original = rope.optional("original_max_position_embeddings")
        if str(rope.raw("rope_type", "type")) in YARN and original:
            reached = max(int(original * (rope.number("factor", default=1.0) or 1.0)), 1)
    return reached


def plain_context(reader: ConfigReader, unscaled_types: Collection[str]) -> int:
    """Return the longest context for engines that do not rescale it, which they serve unasked as well. [tokens].

    The first stated length, times the factor of a rope scaling that names no original length. So YaRN added to a
    config serves what the config stated without it, and LongRoPE all of what is stated.

    Sources:
        SGLang 0.5.23 `srt/utils/hf_transformers/common.py` (`get_context_length`), and TensorRT-LLM 1.2
        `_torch/models/modeling_utils.py` (`infer_max_seq_len`), which leaves out the factor by the type of scaling.
    """
    name = next((name for name in PLAIN_NAMES if reader.raw(name) is not None), None)
    if name is None:
        return context_lengths(reader, unscaled_types)[0]
    length = reader.positive(name)
    if any(part in str(reader.raw("model_type") or "") for part in unscaled_types):
        return length
    rope = ConfigReader(next(iter(_rope_parameters(reader)), {}))
    is_scaled = rope.raw("original_max_position_embeddings") is not None or (
        str(rope.raw("rope_type", "type") or "default") in ALREADY_SCALED
    )
    return length if is_scaled else max(int(length * (rope.number("factor", default=1.0) or 1.0)), 1)


def _rope_parameters(reader: ConfigReader) -> list[Mapping[str, object]]:
    """Return every set of rope parameters: one, or one per layer type."""
    stated = reader.raw("rope_scaling", "rope_parameters")
    if not is_mapping(stated):
        return []
    nested = [value for value in stated.values() if is_mapping(value)]
    return nested or [stated]
