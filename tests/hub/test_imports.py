"""From what a hub publishes to an entry of the catalog."""

from datetime import date
from typing import Any

import pytest

from service.catalog.errors import ConflictError
from service.catalog.facts import model_facts
from service.catalog.snapshot import Snapshot
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.facts import ModelFacts
from service.hub.client import PublishedModel
from service.hub.errors import UnusableHubAnswerError
from service.hub.imports import imported_model
from service.hub.safetensors import Counts
from tests.catalog.samples import SOURCE, model
from tests.hub.server import CONFIG

TODAY = date(2026, 11, 21)


def published(hf_id: str = "made/Tiny", **changes: Any) -> PublishedModel:
    stated: dict[str, Any] = {
        "hf_id": hf_id,
        "config": CONFIG,
        "quantization": None,
        "counts": None,
        "config_url": f"https://huggingface.co/{hf_id}/resolve/main/config.json",
    }
    return PublishedModel(**{**stated, **changes})


def test_a_model_is_named_after_what_stands_behind_the_slash() -> None:
    entry = imported_model(published(), (), None, TODAY).entry

    assert (entry.id, entry.hf_id, entry.checkpoints[0].weight_format) == ("tiny", "made/Tiny", "bf16")
    assert entry.source.checked_on == TODAY


def test_a_model_imported_again_keeps_what_people_gave_it() -> None:
    before = model(id="small-one", name="Small", hf_id="made/Tiny", aliases=["wee"], publisher="made")
    other = {"weight_format": "fp8", "hf_id": "other/Tiny-fp8", "is_default": False, "source": SOURCE}
    before = before.model_validate({**before.model_dump(), "checkpoints": [*before.model_dump()["checkpoints"], other]})

    entry = imported_model(published(), [before], None, TODAY).entry

    assert (entry.id, entry.name, entry.aliases, entry.publisher) == ("small-one", "Small", ("wee",), "made")
    assert [it.hf_id for it in entry.checkpoints] == ["made/Tiny", "made/Up-8B", "other/Tiny-fp8"]
    assert [it.is_default for it in entry.checkpoints] == [True, False, False]


def test_the_id_of_another_model_is_not_taken() -> None:
    with pytest.raises(ConflictError, match="made-up-8b"):
        imported_model(published(), [model()], "made-up-8b", TODAY)


def test_a_structure_without_a_rule_is_refused() -> None:
    with pytest.raises(UnsupportedModelError):
        imported_model(published(config={"architectures": ["NoSuchForCausalLM"]}), (), None, TODAY)


def test_what_the_catalog_cannot_hold_is_named() -> None:
    with pytest.raises(UnusableHubAnswerError, match="config"):
        imported_model(published(config={**CONFIG, "note": "\ud800"}), (), None, TODAY)


def test_files_that_disagree_with_the_config_are_pointed_out() -> None:
    odd = imported_model(published(counts=Counts(4352, 8704)), (), None, TODAY)
    unchecked = imported_model(published(), (), None, TODAY)

    assert "4352 parameters" in odd.warnings[0]
    assert "not checked" in unchecked.warnings[0]


def test_a_quantization_is_the_checkpoint_s_and_not_the_config_s() -> None:
    quantization = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    config = {**CONFIG, "quantization_config": quantization}

    entry = imported_model(published(config=config, quantization=quantization), (), None, TODAY).entry

    assert "quantization_config" not in entry.config
    assert entry.checkpoints[0].quantization_config == quantization
    assert entry.checkpoints[0].weight_format == "fp8"


def test_a_quantization_that_no_engine_reads_is_pointed_out() -> None:
    config = {**CONFIG, "quantization_config": {"quant_algo": "FP8"}}
    imported = imported_model(published(config=config), (), None, TODAY)

    assert imported.entry.checkpoints[0].weight_format == "bf16"
    assert "no quant_method" in imported.warnings[0]

    with pytest.raises(MissingConfigFieldError, match="quant_method"):
        imported_model(published(config={**CONFIG, "quantization_config": {"bits": 4}}), (), None, TODAY)


def test_experts_of_four_bits_beside_fp8_are_imported_as_such(catalog: Snapshot) -> None:
    """deepseek-ai/DeepSeek-V4-Flash: imported as fp8 its experts would be taken for converted to eight bits."""
    stated = catalog.model_entries["deepseek-v4-flash"]
    own = next(each for each in stated.checkpoints if each.is_default)
    entry = imported_model(
        published(own.hf_id, config=stated.config, quantization=own.quantization_config), (), None, TODAY
    ).entry
    facts = model_facts(entry)

    assert entry.checkpoints[0].weight_format == "mxfp4"
    assert isinstance(facts, ModelFacts)
    assert facts.checkpoints[0].quantization == catalog.model("deepseek-v4-flash").checkpoints[0].quantization
