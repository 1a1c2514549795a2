"""Classes without a rule are refused with what stands in its way."""

from pathlib import Path

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.unruled import UNKNOWN
from service.engine.families.registry import REGISTRY


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Step5ForCausalLM", "ring of raw keys"),
        ("WhisperForConditionalGeneration", "transcribes speech"),
        ("OpenVLAForActionPrediction", "robot"),
        ("UnlimitedOCRForCausalLM", "window of their own"),
        ("LlavaOnevision2ForConditionalGeneration", "no published count"),
        ("Gemma3TextModel", "vectors"),
        ("Eagle3LlamaForCausalLM", "drafts for another model"),
        # vLLM 0.33 `model_executor/models/registry.py` (`_PREVIOUSLY_SUPPORTED_MODELS`)
        ("MllamaForConditionalGeneration", "until 0.10.2"),
        ("Plamo2ForCausalLM", "until 0.26.0"),
    ],
)
def test_the_reason_is_named(name: str, reason: str) -> None:
    with pytest.raises(UnsupportedModelError, match=reason):
        REGISTRY.family(name)


def test_every_class_of_the_engine_s_registry_has_a_rule_or_a_reason() -> None:
    """Referee: the names that vLLM 0.33 `model_executor/models/registry.py` lists, one a line in `vllm_0_33_classes`."""
    listed = (Path(__file__).parent / "vllm_0_33_classes.txt").read_text(encoding="utf-8").split()

    assert [name for name in listed if name not in REGISTRY.families and name not in UNKNOWN] == []


def test_no_class_has_both_a_rule_and_a_reason() -> None:
    assert not set(UNKNOWN) & set(REGISTRY.families)
