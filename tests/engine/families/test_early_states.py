"""Which classes of vLLM hand over what an EAGLE-3 head reads."""

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.errors import RefusedStartError
from service.engine.families.early_states import KEEP_STATES, OVER_STAGES
from service.engine.families.registry import REGISTRY
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve


def test_every_class_listed_is_one_of_ours() -> None:
    assert set(REGISTRY.families) >= KEEP_STATES | set(OVER_STAGES)
    assert not KEEP_STATES & set(OVER_STAGES)


# vLLM 0.33 `glm4_moe.py`, `gemma3_mm.py` and `mixtral.py`: no `SupportsEagle3` among the bases.
@pytest.mark.parametrize("model", ["glm-4.5-air", "gemma-3-27b-it", "mixtral-8x7b-v0.1"])
def test_a_class_that_keeps_its_states_drafts_otherwise(catalog: Snapshot, model: str) -> None:
    def drafting(method: str) -> StatedSettings:
        return StatedSettings(num_speculative_tokens=3, speculative_method=method)  # type: ignore[arg-type]

    facts, gpu = catalog.model(model), catalog.gpu("h100")

    with pytest.raises(RefusedStartError, match="no EAGLE-3 head") as refused:
        resolve(facts, gpu, drafting("eagle3"), rules_for("vllm"))
    assert refused.value.field == "speculative_method"
    assert resolve(facts, gpu, drafting("ngram"), rules_for("vllm")).settings.speculative_method == "ngram"
    assert resolve(facts, gpu, drafting("eagle3"), rules_for("sglang")).settings.speculative_method == "eagle3"


@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3-32b", "gpt-oss-120b", "llama-4-scout-17b-16e-instruct"])
def test_a_class_with_the_interface_takes_a_head(catalog: Snapshot, model: str) -> None:
    stated = StatedSettings(num_speculative_tokens=3, speculative_method="eagle3")

    assert resolve(catalog.model(model), catalog.gpu("h100"), stated, rules_for("vllm")).settings.num_speculative_tokens
