"""Classes that vLLM 0.33 refuses by name, as its registry tells."""

from dataclasses import replace

import pytest

from service.engine.engines.classes import check_class
from service.engine.engines.device import REFERENCE
from service.engine.engines.plans import NEWEST
from service.engine.errors import RefusedStartError


def test_a_class_is_refused_after_its_last_version() -> None:
    with pytest.raises(RefusedStartError) as refused:
        check_class("Dots1ForCausalLM", "0.23", REFERENCE)
    assert refused.value.field == "engine_version"
    assert refused.value.accepted == "0.23, or older"

    check_class("Dots1ForCausalLM", "0.23", replace(REFERENCE, plan=replace(NEWEST, version="0.23")))
    check_class("Dots1ForCausalLM", "0.23", replace(REFERENCE, is_vllm_on_cuda=False))
    check_class("LlamaForCausalLM", "", REFERENCE)
