"""Names that say a size which their model's own does not, and tags and short names of known fine-tunes."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        # Tags as https://ollama.com/library lists them, and sizes as publishers print them.
        ("phi4-mini:3.8b", "phi-4-mini-instruct"),
        # since May 2025; as its lists print, `deepseek-r1:8b` and `:8b-0528-qwen3-q4_K_M` are both 6995872bfe4c, 5.2 GB
        ("deepseek-r1:8b", "deepseek-r1-0528-qwen3-8b"),
        ("deepseek-r1:8b-llama-distill", "deepseek-r1-distill-llama-8b"),
        ("DeepSeek-R1-Distill-8B", "deepseek-r1-distill-llama-8b"),
        ("phi4-reasoning:14b", "phi-4-reasoning"),  # 14.7 billion
        ("deepseek-v3.1:671b-cloud", "deepseek-v3.1"),
        ("deepseek-coder-v2:236b", "deepseek-v2"),
        ("command-a:111b", "command-a-03-2025"),
        ("GLM-4.5 355B", "glm-4.5"),
        ("glm-4.5-air 106b", "glm-4.5-air"),
        ("MiniMax M2 230B", "minimax-m2"),
        ("Grok-2 270B", "grok-2"),
        ("mixtral 47b", "mixtral-8x7b-v0.1"),
        ("llama4:128x17b", "llama-4-maverick-17b-128e-instruct"),
        ("devstral:24b", "devstral-small-2507"),
        ("granite4:micro", "granite-4.0-micro"),
        # Of fine-tunes by their own name and size.
        ("openthinker:32b", "qwen2.5-32b-instruct"),
        ("deepcoder 14b", "deepseek-r1-distill-qwen-14b"),
        ("shieldgemma:9b", "gemma-2-9b-it"),
        ("hermes3:405b", "llama-3.1-405b-instruct"),
        ("nemotron:70b", "llama-3.1-70b-instruct"),
        ("TheBloke/WizardCoder-Python-34B-V1.0-AWQ", "codellama-34b"),
    ],
)
def test_a_size_or_a_name_of_its_own_tells_the_model(catalog: Snapshot, name: str, model_id: str) -> None:
    assert catalog.called_models.read(name).model_id == model_id


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("phi4:4b", "phi-4"),  # has 14.7 billion
        ("glm-4.5 32b", "glm-4.5"),  # what a token passes is no size of the model
        ("llama 3.3 405b", "llama-3.1-405b-instruct"),
        ("qwen3 33b", "qwen3-32b"),  # a size in a model's own name is never rounded
        ("openthinker:9b", None),
        ("coder 7b", "qwen2.5-7b-instruct"),  # that Qwen2.5-Coder-7B has the shape of
        ("guard 7b", None),
        ("perplexity-ai/r1-1776", "deepseek-r1"),  # in 8 bits or 16: no page here says
        ("glm-4.7-flash:q8_0", "glm-4.7-flash"),
    ],
)
def test_another_size_is_refused_with_the_nearest(catalog: Snapshot, name: str, nearest: str | None) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.called_models.read(name)

    assert refusal.value.suggestions[:1] == ((nearest,) if nearest else ())


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("k2", ["kimi-k2-instruct", "k2-65b"]),  # LLM360's is named so alone, and Kimi's meant
        ("r1", ["deepseek-r1"]),
        ("v3", ["deepseek-v3"]),
        ("k2.5", ["kimi-k2.5"]),
        ("scout", ["llama-4-scout-17b-16e-instruct"]),
        ("maverick", ["llama-4-maverick-17b-128e-instruct"]),
        ("oss 120b", ["gpt-oss-120b"]),
        ("70b", []),  # any family's
    ],
)
def test_an_edition_without_its_family_is_refused_with_those_that_have_it(
    catalog: Snapshot, name: str, nearest: list[str]
) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        catalog.called_models.read(name)

    assert list(refusal.value.suggestions[: len(nearest) or 1]) == nearest


def test_an_edition_of_a_publisher_is_that_publisher_s(catalog: Snapshot) -> None:
    assert catalog.called_models.read("LLM360/K2").model_id == "k2-65b"
