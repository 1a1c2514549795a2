"""Repositories that have the shape of a model of the catalog, as the hub states both."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.facts import facts_as_named
from service.catalog.names.repositories import REPOSITORIES, of_shape
from service.catalog.names.words import ACTIVE, words_of
from service.engine.fleet.checkpoints import own_checkpoint
from tests.conftest import shared_catalog

CATALOG = shared_catalog()


def test_every_repository_leads_to_a_model_of_the_catalog() -> None:
    assert set(REPOSITORIES.values()) <= set(CATALOG.model_entries)
    assert all(name == name.lower() for name in REPOSITORIES)


def test_a_publishers_next_model_is_none_that_others_tuned_of_an_earlier_one() -> None:
    assert CATALOG.called_models.read("empero-ai/Qwen3.8-9B").model_id == "qwen3.5-9b"
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read("Qwen/Qwen3.8-9B")
    assert "qwen3.5-9b" in refusal.value.suggestions


def test_no_repository_that_says_other_active_experts_has_the_shape() -> None:
    """Of DavidAU/Qwen3-30B-A6B-16-Extreme a token passes 16 experts, by its card, and 8 of the model's own."""

    def active(name: str) -> set[str]:
        return {word for word in words_of(name.rpartition("/")[2]) if word[0] == "a" and ACTIVE.fullmatch(word)}

    other = [name for name, of in REPOSITORIES.items() if active(of) and active(name) and active(name) != active(of)]

    assert other == []
    with pytest.raises(NotInCatalogError):
        CATALOG.called_models.read("DavidAU/Qwen3-30B-A6B-16-Extreme")


@pytest.mark.parametrize(
    ("name", "model_id", "weight_format"),
    # huggingface.co states of both the same layers, widths, vocabulary and total
    [
        ("ByteDance-Seed/UI-TARS-1.5-7B", "qwen2.5-vl-7b-instruct", None),
        ("https://huggingface.co/datalab-to/chandra", "qwen3-vl-8b-instruct", None),
        ("deepreinforce-ai/Ornith-1.0-397B-FP8", "qwen3.5-397b-a17b", "fp8"),
        ("google/medgemma-4b-it", "gemma-3-4b-it", None),
        ("OLMoE-1B-7B-0125-Instruct", "olmoe-1b-7b", None),
    ],
)
def test_a_repository_of_a_known_shape_is_that_model_in_the_format_its_name_says(
    name: str, model_id: str, weight_format: str | None
) -> None:
    reading = CATALOG.called_models.read(name)

    assert (reading.model_id, reading.weight_format) == (model_id, weight_format)


@pytest.mark.parametrize(
    ("name", "weight_format"),
    [
        # llmrun.dev/model/microsoft-mai-ds-r1: 1,342 GB of weights; winbuzzer.com (27 April 2025): 680 of 685 billion
        # parameters of R1T are F8_E4M3.
        ("microsoft/MAI-DS-R1", "bf16"),
        ("MAI-DS-R1", "bf16"),
        ("microsoft/MAI-DS-R1-FP8", "fp8"),
        ("tngtech/DeepSeek-R1T-Chimera", "fp8"),
        ("deepseek-ai/DeepSeek-Prover-V2-671B", "fp8"),
        ("huihui-ai/Huihui-gpt-oss-20b-BF16-abliterated", "bf16"),
    ],
)
def test_what_was_tuned_from_few_bits_is_in_the_format_that_its_name_or_page_says(
    name: str, weight_format: str
) -> None:
    reading = CATALOG.called_models.read(name)

    own = own_checkpoint(facts_as_named(CATALOG, reading))
    assert own.weight_format == weight_format


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("ccharnkij/Ministral-3-14B-Reasoning-2512-Uncensored", "ministral-3-14b-instruct-2512"),
        ("Jinx-org/Jinx-gpt-oss-20b", "gpt-oss-20b"),
        ("simpledirect/Vinci-Cyber-123B-1.0", "devstral-2-123b-instruct-2512"),
    ],
)
def test_what_was_tuned_from_few_bits_and_says_no_format_is_refused_with_its_base(name: str, base: str) -> None:
    with pytest.raises(NotInCatalogError, match="with weight_format") as refusal:
        CATALOG.called_models.read(name)

    assert refusal.value.suggestions == (base,)


@pytest.mark.parametrize(
    ("name", "model_id", "weight_format"),
    [
        ("nm-testing/Phi-3-mini-128k-instruct-FP8", "phi-3.5-mini-instruct", "fp8"),
        ("OpenGVLab/InternVL-Chat-V1-5-AWQ", "internvl2-26b", "int4"),
    ],
)
def test_a_conversion_of_a_known_shape_without_a_size_has_that_shape(
    name: str, model_id: str, weight_format: str
) -> None:
    reading = CATALOG.called_models.read(name)

    assert (reading.model_id, reading.weight_format) == (model_id, weight_format)


def test_a_bare_name_of_two_shapes_is_none() -> None:
    rows = [{"repository": "a/my-tune", "model": "x"}, {"repository": "b/my-tune", "model": "y"}]

    assert "my-tune" not in of_shape(rows)
    assert of_shape(rows[:1])["my-tune"] == "x"


def test_a_bare_name_of_one_word_is_none() -> None:
    assert "gpt" not in of_shape([{"repository": "someone/gpt", "model": "x"}])


def test_a_repository_of_another_shape_stays_refused() -> None:
    # 28,239,147,648 parameters, where Qwen3.6 35B A3B has as many experts as 256 instead of 205 (huggingface.co)
    with pytest.raises(NotInCatalogError) as refusal:
        CATALOG.called_models.read("0xSero/Qwen3.6-28B-REAP")

    assert refusal.value.suggestions[0].startswith("qwen3.6-")


@pytest.mark.parametrize(
    ("name", "like"),
    # The catalog has Llama 2 70B *Chat* in AWQ, and these models in AWQ of others; nvidia's fp8 says an fp8 cache too.
    [
        ("TheBloke/Llama-2-70B-AWQ", "TheBloke/Llama-2-70B-Chat-AWQ"),
        ("someone/Qwen3-32B-AWQ", "Qwen/Qwen3-32B-AWQ"),
        (
            "someone/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
            "hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4",
        ),
    ],
)
def test_a_repository_that_is_named_is_the_one_that_is_served(name: str, like: str) -> None:
    [loaded] = facts_as_named(CATALOG, CATALOG.called_models.read(name)).checkpoints
    [known] = facts_as_named(CATALOG, CATALOG.called_models.read(like)).checkpoints

    assert (loaded.hf_id, known.hf_id) == (name, like)
    assert loaded.quantization == known.quantization
    assert like in str(loaded.source)


def test_a_cache_of_fewer_bits_is_of_its_publisher_s_checkpoints_alone() -> None:
    named = facts_as_named(CATALOG, CATALOG.called_models.read("RedHatAI/Llama-3.3-70B-Instruct-FP8")).checkpoints
    [nvidia] = facts_as_named(CATALOG, CATALOG.called_models.read("nvidia/Llama-3.3-70B-Instruct-FP8")).checkpoints

    assert (nvidia.hf_id, nvidia.kv_cache_dtype) == ("nvidia/Llama-3.3-70B-Instruct-FP8", "fp8")
    assert [each.kv_cache_dtype for each in named] == [None]


@pytest.mark.parametrize(
    ("name", "repository"),
    # huggingface.co; names as people and Ollama, Bedrock and LM Studio write them
    [
        ("qwen2.5-coder:7b", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("Qwen/Qwen2.5-Coder-14B", "Qwen/Qwen2.5-Coder-14B"),
        ("deepseek r1 0528", "deepseek-ai/DeepSeek-R1-0528"),
        ("qwen3 235b a22b thinking 2507", "Qwen/Qwen3-235B-A22B-Thinking-2507"),
        ("mistral.mixtral-8x7b-instruct-v0:1", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("gemma 3 12b pt", "google/gemma-3-12b-pt"),
        ("hermes 4 405b", "NousResearch/Hermes-4-405B"),
        ("hermes 4 70b", "NousResearch/Hermes-4-70B"),
        ("hermes-3-llama-3.1-405b", "NousResearch/Hermes-3-Llama-3.1-405B"),
    ],
)
def test_words_of_another_edition_serve_that_edition(name: str, repository: str) -> None:
    facts = facts_as_named(CATALOG, CATALOG.called_models.read(name))

    assert own_checkpoint(facts).hf_id == repository


@pytest.mark.parametrize(
    ("name", "hf_id"),
    # Of the edition in the format that is said, or none: the catalog's are of the Instruct model, and of V3 itself.
    [
        ("qwen2.5 coder 32b int4", "Qwen/Qwen2.5-Coder-32B-Instruct-AWQ"),
        ("mixtral 8x7b instruct awq", "TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ"),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507-FP8", "Qwen/Qwen3-30B-A3B-Thinking-2507-FP8"),
        ("qwen3 30b a3b thinking 2507 fp8", None),
        ("gemma 3 12b pt fp8", None),
    ],
)
def test_words_of_another_edition_in_a_format_serve_no_other_edition(name: str, hf_id: str | None) -> None:
    [loaded] = facts_as_named(CATALOG, CATALOG.called_models.read(name)).checkpoints

    assert loaded.hf_id == hf_id


@pytest.mark.parametrize("name", ["llama 3.3 70b", "qwen2.5 7b instruct", "deepseek v3", "gpt oss 120b", "qwen3 32b"])
def test_words_of_the_catalog_s_own_edition_serve_it(name: str) -> None:
    reading = CATALOG.called_models.read(name)

    assert reading.repository is None


@pytest.mark.parametrize(
    ("name", "model_id"),
    # The base that the card on huggingface.co, or Ollama's library, names of each.
    [
        ("nvidia/Llama3-ChatQA-1.5-70B", "llama-3-70b-instruct"),
        ("miromind-ai/MiroThinker-1.7-mini", "qwen3-30b-a3b-instruct-2507"),
        ("miromind-ai/MiroThinker-v1.5-235B", "qwen3-235b-a22b-instruct-2507"),
        ("HuggingFaceH4/zephyr-orpo-141b-A35b-v0.1", "mixtral-8x22b-v0.1"),
        ("zephyr:141b", "mixtral-8x22b-v0.1"),
        ("exaone-deep:7.8b", "exaone-3.5-7.8b-instruct"),
        ("athene-v2:72b", "qwen2.5-72b-instruct"),
        ("wizardcoder:33b", "deepseek-coder-33b-instruct"),
        ("WizardLMTeam/WizardCoder-33B-V1.1", "deepseek-coder-33b-instruct"),
        ("shieldgemma:27b", "gemma-2-27b-it"),
        ("llama3-chatqa:70b", "llama-3-70b-instruct"),
        ("reflection:70b", "llama-3.1-70b-instruct"),
        ("sqlcoder:15b", "starcoder-15.5b"),
        ("llama3-gradient:8b", "llama-3-8b-instruct-gradient-1048k"),
        ("gradientai/Llama-3-8B-Instruct-Gradient-1048k", "llama-3-8b-instruct-gradient-1048k"),
    ],
)
def test_a_tune_that_says_no_base_has_that_of_its_card(name: str, model_id: str) -> None:
    assert CATALOG.called_models.read(name).model_id == model_id


def test_a_context_that_was_made_longer_is_that_of_the_entry() -> None:
    longer, own = (CATALOG.model(name).architecture for name in ("llama3-gradient:8b", "llama3:8b"))

    assert (longer.default_max_model_len, own.default_max_model_len) == (1_048_576, 8_192)
    assert len(longer.layers) == len(own.layers)
    with pytest.raises(NotInCatalogError, match="gradient"):
        CATALOG.called_models.read("llama3-gradient:70b")
