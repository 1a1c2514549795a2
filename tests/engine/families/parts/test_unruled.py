"""Classes without a rule are refused with what stands in its way."""

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.unruled import UNKNOWN
from service.engine.families.registry import REGISTRY


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Step5ForCausalLM", "ring of raw keys"),
        ("Qwen4ExpForCausalLM", "ring of raw keys"),
        ("DeepseekV41ForCausalLM", "n-grams"),
        ("WhisperForConditionalGeneration", "transcribes speech"),
        ("OpenVLAForActionPrediction", "robot"),
        # vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`)
        ("MllamaForConditionalGeneration", "until 0.10.2"),
        ("Plamo2ForCausalLM", "until 0.26.0"),
    ],
)
def test_the_reason_is_named(name: str, reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        REGISTRY.family(name)


def test_no_class_has_both_a_rule_and_a_reason() -> None:
    assert not set(UNKNOWN) & set(REGISTRY.families)
