"""Names are looked up for the field that asked, and pasted configs are read once and kept within bounds."""

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.facts import stated_weight_bytes
from service.questions.examples import LLAMA_CONFIG
from service.questions.refusals import RefusalError
from service.questions.sources import BYTES_PER_LAYER, PASTED_ID, PastedModels, Sources


def test_names_are_found_in_any_case(sources: Sources) -> None:
    assert sources.gpu("H100", field="gpu").id == "h100-sxm-80gb"
    assert sources.model("LLAMA-3.3-70B", field="model").id == "llama-3.3-70b-instruct"


def test_the_field_that_asked_is_at_fault(sources: Sources) -> None:
    with pytest.raises(RefusalError) as gpu:
        sources.gpu("h10", field="inventory")
    with pytest.raises(RefusalError) as model:
        sources.model("llama-9", field="drafter")

    assert (gpu.value.kind, gpu.value.faults[0].field) == ("not-in-catalog", "inventory")
    assert "h100-sxm-80gb" in (gpu.value.faults[0].accepted or "")
    assert model.value.faults[0].field == "drafter"


def test_the_same_config_is_one_model_in_any_order_of_its_fields() -> None:
    models = PastedModels()
    turned = dict(reversed(LLAMA_CONFIG.items()))

    facts = models.model(LLAMA_CONFIG, None, None)

    assert models.model(turned, None, None) is facts
    assert facts.id == PASTED_ID
    assert models.model(LLAMA_CONFIG, 20_000_000_000, None).weight_bytes == 20_000_000_000


@pytest.mark.parametrize(
    ("quantization", "bits"), [(None, 16), ({"quant_method": "fp8", "activation_scheme": "dynamic"}, 8)]
)
def test_parameters_are_counted_in_a_checkpoint_s_format(quantization: object, bits: int) -> None:
    config = LLAMA_CONFIG if quantization is None else {**LLAMA_CONFIG, "quantization_config": quantization}

    facts = PastedModels().model(config, None, 1_000_001)

    assert stated_weight_bytes(facts, facts.checkpoints[0]) == -(-1_000_001 * bits // 8)


def test_kept_configs_are_bounded_in_count_and_bytes() -> None:
    few = PastedModels(most=3)
    for number in range(5):
        few.model({**LLAMA_CONFIG, "note": number}, None, None)
    assert len(few.kept) == 3

    depth = len(few.model(LLAMA_CONFIG, None, None).architecture.layers)
    small = PastedModels(most=100, most_bytes=3 * (BYTES_PER_LAYER * depth + 4_000))
    for number in range(5):
        small.model({**LLAMA_CONFIG, "note": f"{number}" * 3000}, None, None)
    assert len(small.kept) == 3

    small.model({**LLAMA_CONFIG, "num_hidden_layers": 3 * depth}, None, None)
    assert len(small.kept) == 1


def test_a_refused_config_is_refused_again() -> None:
    models = PastedModels()

    for _ in range(2):
        with pytest.raises(UnsupportedModelError):
            models.model({"architectures": ["NoSuchForCausalLM"]}, None, None)
