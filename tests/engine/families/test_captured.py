"""Which classes' prompts SGLang captures as graphs, as its sources tell."""

import pytest

from service.engine.families.captured import LEFT_OUT, images_captured_since, prompts_left_out
from service.engine.families.registry import REGISTRY


@pytest.mark.parametrize(
    ("name", "since"),
    [
        # 0.5.16 `configs/model_config.py` (`multimodal_breakable_cuda_graph_supported_model_archs`): these two alone
        ("Qwen3_5MoeForConditionalGeneration", "0.5.16"),
        ("KimiK25ForConditionalGeneration", "0.5.18"),
        ("Cohere2VisionForConditionalGeneration", "0.5.19"),
        ("Qwen3VLForConditionalGeneration", ""),  # on no list until 0.5.23
    ],
)
def test_images_keep_prompts_from_graphs_until_a_version_lists_their_class(name: str, since: str) -> None:
    assert images_captured_since(name) == since


def test_what_is_left_out_for_itself_is_known() -> None:
    names = set(LEFT_OUT) - {"KimiK3LinearForCausalLM"}  # the text model inside of one of ours

    assert names <= set(REGISTRY.families)
    assert prompts_left_out("DeepseekV4ForCausalLM") == ("", "")  # 0.5.12 to 0.5.23
