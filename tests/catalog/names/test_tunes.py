"""A fine-tune that tells its base is read as its base, and what may have another shape is not."""

import pytest

from service.catalog.errors import NotInCatalogError
from service.catalog.names.facts import facts_as_named
from service.catalog.snapshot import Snapshot


@pytest.mark.parametrize(
    ("name", "model_id"),
    [
        ("someone/Llama-3.3-70B-Instruct-abliterated-v9", "llama-3.3-70b-instruct"),
        ("someone/Night-Owl-3-Llama-3.1-70B", "llama-3.1-70b-instruct"),  # the 3 is the owl's
        ("someone/qwen2.5-7b-instruct-storyteller-v2", "qwen2.5-7b-instruct"),
        ("someone/phi-4-uncensored", "phi-4"),
        ("Salesforce/SFR-Iterative-DPO-LLaMA-3-8B-R", "llama-3-8b-instruct"),
    ],
)
def test_the_base_that_a_name_tells_is_the_shape(catalog: Snapshot, name: str, model_id: str) -> None:
    reading = catalog.called_models.read(name)

    assert reading.model_id == model_id
    assert "fine-tune" in reading.how


def test_the_format_of_a_fine_tune_is_the_one_its_name_says(catalog: Snapshot) -> None:
    facts = facts_as_named(catalog, catalog.called_models.read("someone/Llama-3.1-8B-Storyteller-AWQ"))

    assert (facts.id, [each.weight_format for each in facts.checkpoints]) == ("llama-3.1-8b-instruct", ["int4"])


@pytest.mark.parametrize(
    "name",
    [
        "someone/Storyteller-8B",  # no base
        "someone/Llama-8B-Storyteller",  # no version
        "someone/Mistral-7B-Storyteller",  # three editions, of two vocabularies
        "someone/gpt-oss-20b-storyteller",  # in four bits, or in 16
        # of huggingface.co, each with layers or a vocabulary of its own (llmfit 1.1.17)
        "z-lab/Qwen3-8B-DFlash-b16",
        "erenzeytunn/Llama-3.1-8B-Turkish",
        "squarelike/llama-2-ko-story-7b",
        "bknyaz/Qwen3.5-122B-A10B-REAM",
        "r3lax/Qwen3.6-35B-A3B-Escha-W2",
        "DavidAU/Qwen3-8B-64k-Context-2X-Josiefied-Uncensored",
        "nvidia/Llama-3_3-Nemotron-Super-49B-v2",
        # by their cards, eyes and ears in front of the base; and words of layers, experts and contexts
        "togethercomputer/Llama-3.1-8B-Dragonfly-v2",
        "WillHeld/DiVA-llama-3-v0-8b",
        "someone/Qwen3-30B-A3B-64experts",
        # heads that draft (Hydra, arXiv:2402.05109; Clover, 2405.00263; HASS, 2408.15766; SGLang's SpecForge), and what
        # reads a model's states
        "someone/Llama-3.1-8B-hydra-heads",
        "someone/Llama-3.1-8B-clover",
        "someone/Qwen3-32B-HASS",
        "someone/Qwen3-8B-SpecForge",
        "someone/Llama-3.1-8B-transcoder",
        "someone/Llama-3.1-8B-Instruct-value-head",
        "someone/Qwen3-8B-steering-vectors",
        "someone/Llama-3.1-8B-trimmed-v2",
        "someone/Llama-3.1-8B-slim-sft",
        "someone/Llama-3.1-8B-Instruct-64ctx",
        "someone/Qwen2.5-7B-Instruct-extended-sft",
    ],
)
def test_what_may_have_another_shape_is_no_fine_tune(catalog: Snapshot, name: str) -> None:
    with pytest.raises(NotInCatalogError):
        catalog.called_models.read(name)
