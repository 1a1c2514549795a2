"""How a repository is stored whose own recipe is not in the catalog."""

import pytest

from service.catalog.names.facts import facts_as_named
from service.catalog.snapshot import Snapshot
from service.engine.facts import Checkpoint

MODULES = [f"model.layers.3.{name}" for name in ("linear_attn.out_proj", "self_attn.q_proj", "mlp.down_proj")]


def checkpoint_of(catalog: Snapshot, name: str) -> Checkpoint:
    (checkpoint,) = facts_as_named(catalog, catalog.called_models.read(name)).checkpoints
    return checkpoint


def kept(checkpoint: Checkpoint) -> list[bool]:
    return [checkpoint.quantization.of(module).keeps(module) for module in MODULES]


@pytest.mark.parametrize(
    "name", ["Qwen/Qwen3.5-27B-GPTQ-Int4", "someone/Qwen3.6-27B-GPTQ-Int4", "qwen3.8 27b gptq int8"]
)
def test_gptq_of_a_model_with_states_leaves_its_attention_whole(catalog: Snapshot, name: str) -> None:
    # config.json of Qwen/Qwen3.5-27B-GPTQ-Int4: "-:.*attn.*", "-:.*shared_expert.*", "-:.*mtp.*", "-:.*visual.*"
    checkpoint = checkpoint_of(catalog, name)

    assert (checkpoint.quantization.method, checkpoint.is_assumed) == ("gptq", True)
    assert kept(checkpoint) == [True, True, False]


def test_gptq_of_other_numbers_is_stored_as_they_are(catalog: Snapshot) -> None:
    # sudo-0x2a/Qwen3.6-27B-NVFP4-GPTQ (huggingface.co)
    assert checkpoint_of(catalog, "sudo-0x2a/Qwen3.6-27B-NVFP4-GPTQ").quantization.scheme == "nvfp4"


@pytest.mark.parametrize("name", ["someone/Qwen3.6-27B-AWQ", "someone/Qwen3-32B-GPTQ-Int4"])
def test_other_recipes_quantize_every_layer_and_are_said_to_be_assumed(catalog: Snapshot, name: str) -> None:
    checkpoint = checkpoint_of(catalog, name)

    assert checkpoint.is_assumed
    assert not any(kept(checkpoint))


@pytest.mark.parametrize("name", ["nvidia/Qwen3.6-27B-NVFP4", "Qwen/Qwen3-32B-AWQ"])
def test_a_stored_recipe_is_not_assumed(catalog: Snapshot, name: str) -> None:
    assert not checkpoint_of(catalog, name).is_assumed
