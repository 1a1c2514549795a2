"""What a name of a model may mean, and what it must never be taken for."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.facts import facts_as_named
from service.catalog.names.readings import ModelReading
from service.catalog.snapshot import Snapshot


def read(catalog: Snapshot, name: str) -> ModelReading:
    return catalog.called_models.read(name)


def test_every_stored_checkpoint_is_found_by_its_hub_id_and_loaded_as_it_is(catalog: Snapshot) -> None:
    for entry in catalog.model_entries.values():
        if catalog.refusal(entry.id):
            continue
        for checkpoint in entry.checkpoints:
            reading = read(catalog, checkpoint.hf_id)
            assert reading.model_id == entry.id
            if not checkpoint.is_default:
                assert [each.hf_id for each in facts_as_named(catalog, reading).checkpoints] == [checkpoint.hf_id]


@pytest.mark.parametrize("wrong", ["llama 3.1 80b", "qwen3 33b", "llama3.3 8b", "mixtral 8x9b", "gemma 3 28b it"])
def test_a_size_that_no_model_has_is_refused_and_never_rounded(catalog: Snapshot, wrong: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        read(catalog, wrong)

    assert refusal.value.suggestions


@pytest.mark.parametrize("word", ["vision", "embedding", "coder", "preview", "reranker", "math"])
def test_a_word_that_makes_another_model_is_not_overheard(catalog: Snapshot, word: str) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        read(catalog, f"someone/Llama-3.3-70B-{word}")

    assert refusal.value.suggestions[0] == "llama-3.3-70b-instruct"


@pytest.mark.parametrize(
    ("vague", "candidate"), [("qwen3", "qwen3-8b"), ("mixtral", "mixtral-8x22b-v0.1"), ("gemma-3-it", "gemma-3-27b-it")]
)
def test_a_name_of_several_models_is_refused_with_them(catalog: Snapshot, vague: str, candidate: str) -> None:
    with pytest.raises(NotInCatalogError, match="several") as refusal:
        read(catalog, vague)

    assert candidate in refusal.value.suggestions


@pytest.mark.parametrize(
    ("name", "weight_format"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "fp8"),
        ("nvidia/Llama-3.3-70B-Instruct-FP4", "nvfp4"),
        ("someone/Llama-3.3-70B-Instruct-NVFP4", "nvfp4"),
        ("someone/Llama-3.3-70B-Instruct-GPTQ-Int8", "int8"),
        ("someone/Llama-3.3-70B-Instruct-GPTQ-Int4", "int4"),
        ("someone/Llama-3.3-70B-Instruct-quantized.w8a8", "int8"),
        ("someone/Llama-3.3-70B-Instruct-w4a16-g128", "int4"),
        ("amd/Llama-3.3-70B-Instruct-Quark-AWQ-MXFP4", "mxfp4"),
        ("llama 3.3 70b awq", "int4"),
    ],
)
def test_the_format_follows_from_the_name(catalog: Snapshot, name: str, weight_format: str) -> None:
    facts = facts_as_named(catalog, read(catalog, name))

    assert (facts.id, [each.weight_format for each in facts.checkpoints]) == ("llama-3.3-70b-instruct", [weight_format])


def test_bitsandbytes_is_stored_as_bitsandbytes_stores_it(catalog: Snapshot) -> None:
    facts = facts_as_named(catalog, read(catalog, "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"))

    assert facts.checkpoints[0].quantization.scheme == "bitsandbytes-4bit"


@pytest.mark.parametrize(
    ("name", "whose"),
    [
        ("unsloth/Llama-3.3-70B-Instruct-GGUF", "GGUF"),
        ("llama3.3:70b-instruct-q4_k_m", "GGUF"),
        ("mlx-community/Llama-3.3-70B-Instruct-4bit", "MLX"),
        ("turboderp/Llama-3.3-70B-Instruct-exl2", "EXL2"),
    ],
)
def test_files_of_other_programs_are_refused_by_their_name(catalog: Snapshot, name: str, whose: str) -> None:
    with pytest.raises(NotInCatalogError, match=whose) as refusal:
        read(catalog, name)

    assert refusal.value.suggestions[0] == "llama-3.3-70b-instruct"


def test_a_name_that_says_two_formats_is_refused(catalog: Snapshot) -> None:
    with pytest.raises(NotInCatalogError, match="fp8 and int4"):
        read(catalog, "someone/Llama-3.3-70B-Instruct-FP8-INT4")


def test_a_name_of_the_catalog_is_no_reading(catalog: Snapshot) -> None:
    assert not read(catalog, "LLAMA-3.3-70b").how
    assert read(catalog, "llama 3.3 70b").how


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"),
        ("https://huggingface.co/google/gemma-3-27b-pt/tree/main", "google/gemma-3-27b-pt"),
        ("NousResearch/Hermes-3-Llama-3.1-70B", "NousResearch/Hermes-3-Llama-3.1-70B"),
        ("someone/Llama-3.3-70B-Instruct-abliterated-v9", "someone/Llama-3.3-70B-Instruct-abliterated-v9"),
        # Services have names of their own, which no hub knows.
        ("meta/llama-3.3-70b-instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("together_ai/meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("qwen/qwen3-32b", "Qwen/Qwen3-32B"),
        # Whoever pastes a command runs what a link brought along.
        ("someone/Llama-3.3-70B-Instruct-abliterated-v9-$(id)", "meta-llama/Llama-3.3-70B-Instruct"),
        ("someone;id/Llama-3.3-70B-Instruct-abliterated-v9", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_the_repository_that_was_named_is_the_one_that_is_served(catalog: Snapshot, name: str, served: str) -> None:
    facts = facts_as_named(catalog, read(catalog, name))

    assert [each.hf_id for each in facts.checkpoints if each.is_default] == [served]


def test_a_conversion_that_the_catalog_has_not_is_served_as_it_was_spelled(catalog: Snapshot) -> None:
    named = [facts_as_named(catalog, read(catalog, name)) for name in ("Some/Phi-4-NVFP4", "`id`/Phi-4-NVFP4")]

    assert [[each.hf_id for each in facts.checkpoints] for facts in named] == [["Some/Phi-4-NVFP4"], [None]]


@pytest.mark.parametrize(
    ("alias", "served"),
    [
        ("mistral-small-3.2", "mistralai/Mistral-Small-3.2-24B-Instruct-2506"),
        ("deepseek-r1-0528", "deepseek-ai/DeepSeek-R1-0528"),
        ("deepseek-v3-0324", "deepseek-ai/DeepSeek-V3-0324"),
        ("deepseek-r1-671b", "deepseek-ai/DeepSeek-R1"),
        ("qwen3-30b-a3b-thinking-2507", "Qwen/Qwen3-30B-A3B-Thinking-2507"),
        ("mixtral-8x7b-instruct", "mistralai/Mixtral-8x7B-Instruct-v0.1"),
        ("qwen2.5-0.5b-instruct", "Qwen/Qwen2.5-0.5B-Instruct"),
        ("deepseek-coder-v2-lite", "deepseek-ai/DeepSeek-Coder-V2-Lite-Instruct"),
        ("hermes-3-8b", "NousResearch/Hermes-3-Llama-3.1-8B"),
        ("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct"),
    ],
)
def test_an_alias_of_another_edition_serves_that_edition(catalog: Snapshot, alias: str, served: str) -> None:
    facts = facts_as_named(catalog, read(catalog, alias))

    # The database keeps further names in lower case, and the hub's are read in any: huggingface_hub#2090.
    assert [each.hf_id.lower() for each in facts.checkpoints if each.is_default and each.hf_id] == [served.lower()]


def test_a_fine_tune_has_no_checkpoints_of_its_base_and_another_edition_has(catalog: Snapshot) -> None:
    tune = facts_as_named(catalog, read(catalog, "NousResearch/Hermes-3-Llama-3.1-70B"))
    edition = facts_as_named(catalog, read(catalog, "deepseek-ai/DeepSeek-V3-0324"))

    assert [each.weight_format for each in tune.checkpoints] == ["bf16"]
    assert "nvidia/DeepSeek-V3-0324-NVFP4" in [each.hf_id for each in edition.checkpoints]
    # What another edition is stored in elsewhere is nobody's that the catalog knows.
    thinking = facts_as_named(catalog, read(catalog, "Qwen/Qwen3-30B-A3B-Thinking-2507"))
    assert [each.hf_id for each in thinking.checkpoints[:3]] == [
        "Qwen/Qwen3-30B-A3B-Thinking-2507",
        "Qwen/Qwen3-30B-A3B-Thinking-2507-FP8",
        None,
    ]
    assert not any("Instruct" in (each.hf_id or "") for each in thinking.checkpoints)
    mirror = facts_as_named(catalog, read(catalog, "unsloth/Llama-3.3-70B-Instruct"))
    assert "nvidia/Llama-3.3-70B-Instruct-FP8" in [each.hf_id for each in mirror.checkpoints]
    assert tune.architecture is catalog.model("llama-3.1-70b-instruct").architecture


@pytest.mark.parametrize(
    ("mistyped", "meant"),
    [("llama-3.3-7b", "llama-3.3-70b-instruct"), ("phi-5", "phi-4"), ("qwen2.5-27b", "qwen2.5-72b-instruct")],
)
def test_a_mistyped_figure_leaves_the_model_that_is_meant_among_the_neighbours(
    catalog: Snapshot, mistyped: str, meant: str
) -> None:
    with pytest.raises(NotInCatalogError) as refusal:
        read(catalog, mistyped)

    assert meant in refusal.value.suggestions
