"""What is loaded: what was stated, what is published, or what the engine makes of it."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.names.facts import facts_as_named
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.errors import RefusedStartError
from service.engine.fleet.checkpoints import loaded_checkpoint, own_checkpoint
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import WeightFormat


def loaded(catalog: Snapshot, model: str, gpu: str, stated: StatedSettings) -> tuple[str, str]:
    part = catalog.gpu(gpu)
    checkpoint, note = loaded_checkpoint(catalog.model(model), part, device_of(part, rules_for("vllm")), stated)
    return checkpoint.weight_format, note.origin


def test_a_model_is_loaded_as_it_is_published(catalog: Snapshot) -> None:
    assert loaded(catalog, "llama-3.1-8b", "h100", StatedSettings()) == ("bf16", "catalog")
    assert loaded(catalog, "deepseek-v3", "h100", StatedSettings()) == ("fp8", "catalog")


def test_a_stated_format_is_loaded(catalog: Snapshot) -> None:
    assert loaded(catalog, "llama-3.1-8b", "h100", StatedSettings(weight_format="int4")) == ("int4", "request")


def test_fp8_is_made_of_16_bits_while_it_loads(catalog: Snapshot) -> None:
    part, model = catalog.gpu("h100"), catalog.model("llama-3.1-8b")
    device = device_of(part, rules_for("vllm"))
    made, _ = loaded_checkpoint(model, part, device, StatedSettings(quantization="fp8"))

    assert made.quantization.is_made_at_load
    assert (own_checkpoint(model).hf_id or "") in (made.source or "")


def test_fp8_is_not_made_of_fewer_bits(catalog: Snapshot) -> None:
    """vLLM 0.33 `config/model.py` (`_verify_quantization`)."""
    with pytest.raises(RefusedStartError, match="mxfp4"):
        loaded(catalog, "gpt-oss-120b", "h100", StatedSettings(quantization="fp8"))


def test_a_gpu_without_bfloat16_loads_float16(catalog: Snapshot) -> None:
    assert loaded(catalog, "llama-3.1-8b", "t4", StatedSettings()) == ("fp16", "default")


@pytest.mark.parametrize(
    ("stated", "repository", "is_made"),
    [("fp8", None, True), ("bf16", "mistralai/Mistral-Small-3.2-24B-Instruct-2506", False)],
)
def test_another_edition_is_made_of_its_own_weights_where_no_repository_of_it_is_known(
    catalog: Snapshot,
    stated: WeightFormat,
    repository: str | None,
    is_made: bool,  # noqa: FBT001 - a column
) -> None:
    """Of Mistral Small 3.2 the catalog has its own repository alone; of 3.1, whose shape it has, others."""
    part, edition = catalog.gpu("h100"), catalog.called_models.read("mistral small 3.2")
    device = device_of(part, rules_for("vllm"))

    checkpoint, _ = loaded_checkpoint(
        facts_as_named(catalog, edition), part, device, StatedSettings(weight_format=stated)
    )

    assert (checkpoint.hf_id, checkpoint.quantization.is_made_at_load) == (repository, is_made)
