"""Classes that vLLM 0.33 refuses by name, as its registry and `SupportsPP` tell."""

from dataclasses import replace

import pytest

from service.engine.engines.classes import LAST_VERSIONS, WITHOUT_STAGES, check_class
from service.engine.engines.device import REFERENCE
from service.engine.engines.plans import NEWEST
from service.engine.errors import RefusedStartError


def test_a_class_is_refused_after_its_last_version() -> None:
    with pytest.raises(RefusedStartError) as refused:
        check_class("Dots1ForCausalLM", REFERENCE)
    assert refused.value.field == "engine_version"
    assert refused.value.accepted == "0.23, or older"

    check_class("Dots1ForCausalLM", replace(REFERENCE, plan=replace(NEWEST, version="0.23")))
    check_class("Dots1ForCausalLM", replace(REFERENCE, is_vllm_on_cuda=False))
    check_class("LlamaForCausalLM", REFERENCE)


def test_what_is_gone_has_no_other_fault() -> None:
    assert WITHOUT_STAGES.isdisjoint(LAST_VERSIONS)
