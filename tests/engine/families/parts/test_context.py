"""The longest context, for configs as they are published."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.context import context_lengths, former_context, plain_context

# config, and the context that the publisher prints: accepted, and served unasked
PUBLISHED: dict[str, tuple[dict[str, Any], int, int]] = {
    # huggingface.co/meta-llama/Llama-3.1-8B: 128 Ki tokens, scaling included
    "Llama 3.1": (
        {"max_position_embeddings": 131_072, "rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, 131_072, 131_072,
    ),
    # huggingface.co/microsoft/Phi-3-mini-128k-instruct: 128 Ki tokens, 4 Ki without LongRoPE
    "Phi-3 mini 128K": (
        {
            "max_position_embeddings": 131_072,
            "original_max_position_embeddings": 4_096,
            "rope_scaling": {"type": "longrope"},
        },
        131_072, 4_096,
    ),
    # huggingface.co/lmsys/vicuna-7b-v1.5-16k: 4 Ki tokens scaled by 4
    "Vicuna 16K": (
        {"max_position_embeddings": 4_096, "rope_scaling": {"type": "linear", "factor": 4.0}}, 16_384, 16_384,
    ),
    # vLLM 0.30 `_get_and_verify_max_len`: "YaRN variants leave max_position_embeddings already scaled"
    "Qwen2.5 with YaRN": (
        {
            "max_position_embeddings": 32_768,
            "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
        },
        32_768, 32_768,
    ),
    # huggingface.co/openai/gpt-oss-120b: 128 Ki tokens, 32 x 4,096
    "gpt-oss": (
        {
            "max_position_embeddings": 131_072,
            "rope_scaling": {"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4_096},
        },
        131_072, 131_072,
    ),
    # huggingface.co/openai-community/gpt2
    "GPT-2": ({"n_positions": 1_024}, 1_024, 1_024),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_context_is_the_printed_one(name: str) -> None:
    config, longest, unasked = PUBLISHED[name]

    assert context_lengths(ConfigReader(config), ()) == (longest, unasked)


def test_some_types_state_the_scaled_length_whatever_their_rope() -> None:
    config = {
        "model_type": "gemma3_text",
        "max_position_embeddings": 131_072,
        "rope_scaling": {"type": "linear", "factor": 8},
    }

    assert context_lengths(ConfigReader(config), ("gemma3",)) == (131_072, 131_072)


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        # SGLang 0.5.23, get_context_length: a scaling with an original length brings no factor.
        ("Qwen2.5 with YaRN", 32_768),
        ("Phi-3 mini 128K", 131_072),
        ("Vicuna 16K", 16_384),
        ("Llama 3.1", 131_072),
        ("gpt-oss", 131_072),
        ("GPT-2", 1_024),
    ],
)
def test_other_engines_take_no_factor_of_yarn(name: str, tokens: int) -> None:
    assert plain_context(ConfigReader(PUBLISHED[name][0]), ()) == tokens


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        # huggingface.co/Qwen/Qwen2.5-7B-Instruct, "Processing Long Texts": 131,072 tokens with what it has readers add
        ("Qwen2.5 with YaRN", 131_072),
        ("gpt-oss", 131_072),
        ("Vicuna 16K", 0),
        ("Phi-3 mini 128K", 0),
    ],
)
def test_older_versions_reach_by_yarn_what_it_names(name: str, tokens: int) -> None:
    assert former_context(ConfigReader(PUBLISHED[name][0]), ()) == tokens
    assert former_context(ConfigReader(PUBLISHED[name][0] | {"model_type": "kept"}), ("kept",)) == 0
