"""Classes that vLLM 0.33 refuses by name, as its registry tells."""

from dataclasses import replace

import pytest

from service.engine.engines.classes import check_class, check_served
from service.engine.engines.device import REFERENCE
from service.engine.engines.plans import NEWEST
from service.engine.errors import RefusedStartError


def test_a_class_is_refused_after_its_last_version() -> None:
    with pytest.raises(RefusedStartError) as refused:
        check_class("XverseForCausalLM", {}, "0.23", REFERENCE)
    assert refused.value.field == "engine_version"
    assert refused.value.accepted == "0.23, or older"

    check_class("XverseForCausalLM", {}, "0.23", replace(REFERENCE, plan=replace(NEWEST, version="0.23")))
    check_class("XverseForCausalLM", {}, "0.23", replace(REFERENCE, is_vllm=False, is_vllm_on_cuda=False))
    check_class("LlamaForCausalLM", {}, "", REFERENCE)


def test_a_class_is_refused_up_to_the_newest_version_that_lacks_it() -> None:
    # vLLM 0.10.1.1's registry has no Qwen3NextForCausalLM; that of 0.10.2 has.
    before, after = (replace(REFERENCE, release=version) for version in ("0.10.1", "0.10.2"))
    with pytest.raises(RefusedStartError, match="has no Qwen3NextForCausalLM yet") as refused:
        check_class("Qwen3NextForCausalLM", {"vllm": "0.10.1.1"}, "", before)
    assert refused.value.accepted == "newer than 0.10.1.1"

    check_class("Qwen3NextForCausalLM", {"vllm": "0.10.1.1"}, "", after)
    check_class("Qwen3NextForCausalLM", {"vllm": "0.10.1.1"}, "", replace(before, name="tensorrt-llm", is_vllm=False))


def test_a_class_is_refused_by_the_engines_that_have_none() -> None:
    sglang = replace(REFERENCE, name="sglang", is_vllm=False, is_vllm_on_cuda=False)
    with pytest.raises(RefusedStartError, match="SGLang has no JambaForCausalLM") as refused:
        check_served("JambaForCausalLM", {"sglang", "tensorrt-llm"}, sglang)
    assert (refused.value.field, refused.value.accepted) == ("engine", "vllm")

    check_served("Olmo3ForCausalLM", {"tensorrt-llm"}, sglang)
    for other in (REFERENCE, replace(sglang, name="tensorrt-llm")):
        check_served("JambaForCausalLM", {"sglang", "tensorrt-llm"}, other)
