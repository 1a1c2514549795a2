"""Which language model a multimodal class wraps, by configs as they are published."""

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.wrappers import always, named_inside
from service.engine.families.registry import REGISTRY


@pytest.mark.parametrize(
    ("inner", "name"),
    [
        ({"architectures": ["Qwen3ForCausalLM"], "model_type": "llama"}, "Qwen3ForCausalLM"),
        ({"model_type": "mistral"}, "MistralForCausalLM"),
        ({"architectures": ["NoSuchForCausalLM"], "model_type": "llama"}, "LlamaForCausalLM"),
    ],
)
def test_the_inner_class_goes_before_its_model_type(inner: dict[str, object], name: str) -> None:
    assert named_inside({"text_config": inner}, REGISTRY) == name
    assert always("Other")({"text_config": inner}, REGISTRY) == "Other"


def test_a_model_type_without_a_rule_is_refused() -> None:
    with pytest.raises(UnsupportedModelError, match=r"text_config\.model_type"):
        named_inside({"text_config": {"model_type": "no-such"}}, REGISTRY)
