"""Another edition of a model is said to be one, and spelled as its publisher spells it."""

import pytest

from service.catalog.names.readings import repository_of_edition
from service.catalog.snapshot import Snapshot
from service.engine.inputs import Layout
from service.engine.memory.weights import rank_weights

THINKING, SMALL = "Qwen/Qwen3-235B-A22B-Thinking-2507", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"


@pytest.mark.parametrize("name", [THINKING, THINKING.partition("/")[2], THINKING.partition("/")[2].lower()])
def test_an_edition_is_read_and_said(catalog: Snapshot, name: str) -> None:
    reading = catalog.called_models.read(name)

    assert (reading.model_id, reading.repository) == ("qwen3-235b-a22b-instruct-2507", THINKING)
    assert "Qwen3 235B A22B Instruct 2507" in reading.how


@pytest.mark.parametrize("repository", [THINKING, SMALL])
def test_a_database_s_lower_case_is_spelled_as_published(catalog: Snapshot, repository: str) -> None:
    alias = repository.partition("/")[2].lower()
    entry = catalog.model_entries[catalog.called_models.read(alias).model_id]
    stored = entry.model_copy(update={"aliases": tuple(sorted(each.lower() for each in entry.aliases))})

    assert repository_of_edition(alias, stored) == repository


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        # context_length of models/zai-org/glm-4-9b-hf.yaml of vllm-project/recipes
        ("zai-org/glm-4-9b-hf", 8_192),
        ("zai-org/glm-4-9b-chat-hf", 131_072),
        # max_position_embeddings of the base's config.json, and of the chat's: cards of Qwen3 bases print 32,768,
        # huggingface.co/blog/llama4-release "pretrained with 256K context"
        ("Qwen/Qwen3-8B-Base", 32_768),
        ("qwen3-8b-base", 32_768),
        ("qwen3-8b", 40_960),
        ("Qwen/Qwen3-30B-A3B-Base", 32_768),
        ("Qwen/Qwen2.5-14B", 131_072),
        ("qwen2.5-14b", 32_768),
        ("qwen 2.5 14b", 32_768),
        ("qwen 2.5 32b", 32_768),
        ("Qwen/Qwen2-7B", 131_072),
        ("qwen2 7b", 32_768),
        ("meta-llama/Llama-4-Scout-17B-16E", 262_144),
        ("llama 4 scout", 10_485_760),
    ],
)
def test_a_base_model_serves_its_own_context(catalog: Snapshot, name: str, tokens: int) -> None:
    model = catalog.model(catalog.called_models.read(name).model_id)

    assert model.architecture.default_max_model_len == tokens


@pytest.mark.parametrize(
    ("name", "parameters"),
    # The table of V4's card: 284B and 1.6T, "FP8 Mixed" of the bases where V4 itself is "FP4 + FP8 Mixed".
    [("deepseek-ai/DeepSeek-V4-Flash-Base", 284e9), ("deepseek v4 pro base", 1.6e12)],
)
def test_a_base_in_another_format_than_its_chat_has_a_byte_a_parameter(
    catalog: Snapshot, name: str, parameters: float
) -> None:
    model = catalog.model(catalog.called_models.read(name).model_id)
    [own] = model.checkpoints

    loaded = rank_weights(model.architecture, layout=Layout(), quantization=own.quantization).loaded_bytes

    assert own.weight_format == "fp8"
    assert loaded == pytest.approx(parameters, rel=0.03)
