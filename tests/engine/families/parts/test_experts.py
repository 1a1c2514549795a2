"""Experts, as published configs state them."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import UnsupportedModelError
from service.engine.families.parts.experts import Experts, none_shared

# huggingface.co/deepseek-ai/DeepSeek-V3 and Qwen/Qwen1.5-MoE-A2.7B
V3: dict[str, Any] = {
    "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_intermediate_size": 2_048, "intermediate_size": 18_432,
    "topk_method": "noaux_tc",
}  # fmt: skip
QWEN: dict[str, Any] = {
    "num_experts_per_tok": 4, "moe_intermediate_size": 1_408, "shared_expert_intermediate_size": 5_632,
}  # fmt: skip


def test_shared_experts_are_counted_or_stated_by_their_width() -> None:
    deepseek = Experts().read(ConfigReader(V3), 256, is_gated=True)
    qwen = Experts(has_shared_gate=True).read(ConfigReader(QWEN), 60, is_gated=True)

    assert (deepseek.shared_expert_intermediate_size, qwen.shared_expert_intermediate_size) == (2_048, 5_632)
    assert (deepseek.has_shared_gate, qwen.has_shared_gate) == (False, True)


def test_the_width_of_an_expert_goes_before_that_of_a_dense_network() -> None:
    assert Experts().read(ConfigReader(V3), 256, is_gated=True).moe_intermediate_size == 2_048


def test_a_bias_without_an_auxiliary_loss_is_a_vector_of_the_router() -> None:
    assert Experts().read(ConfigReader(V3), 256, is_gated=True).has_score_correction
    assert not Experts().read(ConfigReader(QWEN), 60, is_gated=True).has_score_correction


def test_a_shared_expert_that_the_code_does_not_build_is_left_out() -> None:
    parts = Experts(shared=none_shared, has_shared_gate=True).read(ConfigReader(QWEN), 60, is_gated=True)

    assert (parts.shared_expert_intermediate_size, parts.has_shared_gate) == (0, False)


def test_a_token_passes_no_more_experts_than_there_are() -> None:
    """As `torch.topk` has it: "selected index k out of range"; LongCat's router has choices that are no experts."""
    assert Experts().read(ConfigReader(QWEN), 4, is_gated=True).num_experts_per_tok == 4
    assert Experts(num_idle=lambda _: 1).read(ConfigReader(QWEN), 3, is_gated=True).num_experts_per_tok == 4

    with pytest.raises(UnsupportedModelError) as refusal:
        Experts().read(ConfigReader(QWEN), 3, is_gated=True)

    assert refusal.value.field == "model_config.num_experts_per_tok"
    assert "from 1 to 3" in (refusal.value.accepted or "")
