"""A word of a format that is not sized, or is misspelt, makes no name a model in 16 bits."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.readings import own_format
from service.catalog.names.unsized import misspelt_format, other_format
from service.catalog.snapshot import Snapshot

SLIPS = {
    "NVPF4": "nvfp4", "AQW": "awq", "AWG": "awq", "GTPQ": "gptq", "FB8": "fp8", "PF8": "fp8", "Itn4": "int4",
    "MXPF4": "mxfp4", "nvf4": "nvfp4", "autorund": "autoround", "bitsandbites": "bitsandbytes",
}  # fmt: skip
# Formats of vLLM, transformers, and of repositories of pytorch, amd, mlx-community, OsaurusAI and others.
OTHERS = (
    "int3 int5 int6 PTPC float8 float8dq mxfp mx4 SINQ eora qoq qserve quik rtn higgs flute mxint4 hifp8 optiq dwq "
    "ctranslate2 imatrix litertlm NeuronX FBGEMM-nonuniform WMXFP4FP8-AMXFP4FP8-AMP-KVFP8 MR-GPTQ-mxfp JANG_4M MTPLX"
)


@pytest.mark.parametrize(("slip", "meant"), SLIPS.items())
def test_a_misspelt_format_is_refused_with_the_one_that_is_meant(catalog: Snapshot, slip: str, meant: str) -> None:
    with pytest.raises(NotInCatalogError, match=f"nearly {meant}") as refusal:
        catalog.called_models.read(f"nvidia/Llama-3.3-70B-Instruct-{slip}")

    assert refusal.value.suggestions[0] == "llama-3.3-70b-instruct"


@pytest.mark.parametrize("word", OTHERS.split())
def test_a_format_that_is_not_sized_is_refused_by_its_name(catalog: Snapshot, word: str) -> None:
    with pytest.raises(NotInCatalogError, match="a format that is not sized") as refusal:
        catalog.called_models.read(f"someone/Qwen3-32B-{word}")

    assert refusal.value.suggestions[0] == "qwen3-32b"


@pytest.mark.parametrize(
    "words", ["AWS", "raw", "aqua", "GPT-4o-distill", "ep8", "gpt4", "into-the-wild", "QwQ-style", "16bit", "bits-v2"]
)
def test_ordinary_words_are_near_no_format(words: str) -> None:
    assert misspelt_format(f"someone/Qwen3-32B-{words}") is None


@pytest.mark.parametrize("words", ["AWS", "raw", "aqua", "flight", "ep8", "16bit", "Storyteller-v2"])
def test_a_fine_tune_of_ordinary_words_is_understood(catalog: Snapshot, words: str) -> None:
    assert catalog.called_models.read(f"someone/Qwen3-32B-{words}").model_id == "qwen3-32b"


@pytest.mark.parametrize("words", ["FP8-PTPC", "AutoRound-W4A16-RTN", "INT8-W8A8-imatrix", "4bit-group128"])
def test_a_word_of_a_recipe_beside_its_format_is_no_other_format(words: str) -> None:
    # huggingface.co: ginsongsong/GLM-5.2-FP8-PTPC, LeaderboardModel1/gemma-4-12B-AutoRound-W4A16-RTN and others
    assert other_format(f"someone/Qwen3-32B-{words}") is None


@pytest.mark.parametrize(
    ("name", "word"),
    # huggingface.co: each has the shape of its model, and its weights in fewer bits
    [
        ("neuralmagic/TinyLlama-1.1B-Chat-v1.0-marlin", "marlin"),
        ("nm-testing/tinyllama-oneshot-w8w8-test-static-shape-change", "w8w8"),
        ("nm-testing/Meta-Llama-3-8B-Instruct-nonuniform-test", "nonuniform"),
        ("ISTA-DASLab/Llama-3.1-70B-Instruct-2Bit-GSQ", "2bit"),
        ("OsaurusAI/Qwen3.8-27B-MXFP8", "mxfp8"),
        ("Youssofal/Qwen3.6-27B-MTPLX-Optimized-Speed", "mtplx"),
        ("ginsongsong/GLM-5.3-PTPC", "ptpc"),
        ("Minachist/Qwen3.8-27B-INT6-Mixed-AutoRound", "int6"),
        ("yugeshkarunamurthy/Qwopus3.5-4B-Coder-oQ6", "oq6"),
    ],
)
def test_a_repository_in_few_bits_is_not_its_shape_in_16(catalog: Snapshot, name: str, word: str) -> None:
    with pytest.raises(NotInCatalogError, match=f"says '{word}'"):
        catalog.called_models.read(name)


@pytest.mark.parametrize(
    "name", ["microsoft/harrier-oss-v1-0.6b", "codefuse-ai/F2LLM-v2-4B", "lightonai/LightOn-rerank-PW-4B"]
)
def test_a_model_that_embeds_or_ranks_has_no_generating_one_s_place(catalog: Snapshot, name: str) -> None:
    # their cards on huggingface.co, and its task feature-extraction as llmfit 1.1.17 lists it
    with pytest.raises(NotInCatalogError, match="only models that generate"):
        catalog.called_models.read(name)


@pytest.mark.parametrize(
    ("name", "model_id", "weight_format"),
    [
        ("gaunernst/gemma-3-27b-it-qat-autoawq", "gemma-3-27b-it", "int4"),
        ("google/gemma-3-27b-it-qat-q4_0-unquantized", "gemma-3-27b-it", "bf16"),
        ("google/gemma-3-12b-it-qat-int4-unquantized", "gemma-3-12b-it", "bf16"),
        ("someone/Qwen3-32B-4-bit", "qwen3-32b", "int4"),
        ("someone/Qwen3-32B-FP-8", "qwen3-32b", "fp8"),
        ("nvidia/Nemotron-Cascade-14B-Thinking", "qwen3-14b", "bf16"),
        ("cyankiwi/Hermes-4-14B-AWQ-4bit", "qwen3-14b", "int4"),
    ],
)
def test_a_format_is_read_however_it_is_written(
    catalog: Snapshot, name: str, model_id: str, weight_format: str
) -> None:
    reading = catalog.called_models.read(name)

    said = reading.weight_format or own_format(catalog.model_entries[reading.model_id])
    assert (reading.model_id, said) == (model_id, weight_format)


def test_an_ollama_tag_of_weights_trained_for_few_bits_is_llama_cpp_s(catalog: Snapshot) -> None:
    # ollama.com/library/gemma3/tags: 27b-it-qat is a Q4_0 file
    with pytest.raises(NotInCatalogError, match=r"llama\.cpp"):
        catalog.called_models.read("gemma3:27b-it-qat")
