"""Which modules a scheme speaks for."""

from itertools import product

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import UnsupportedModelError
from service.engine.formats.scheme import UNQUANTIZED, Quantization, block_length, checked_patterns

Q_PROJ = "model.layers.0.self_attn.q_proj"
UP = "model.layers.0.mlp.experts.gate_up_proj"


def test_ignored_modules_keep_the_model_s_dtype() -> None:
    stored = Quantization(scheme="fp8-tensor", ignored=("lm_head", "model.layers.0.self_attn"))

    assert stored.keeps("lm_head")
    assert stored.keeps(Q_PROJ)
    assert not stored.keeps("model.layers.1.self_attn.q_proj")
    assert UNQUANTIZED.keeps("model.layers.1.self_attn.q_proj")


def test_a_scheme_of_experts_leaves_all_others() -> None:
    stored = Quantization(scheme="mxfp4", block=32, experts_only=True)

    assert [stored.keeps(module) for module in (Q_PROJ, UP)] == [True, False]


def test_a_mixed_checkpoint_s_modules_have_their_own_scheme() -> None:
    stored = Quantization(scheme="nvfp4", mixed=((Q_PROJ, "fp8-tensor", 0), ("model.layers.0.mlp", "nvfp4", 16)))

    assert (stored.of(Q_PROJ).scheme, stored.of(UP).scheme, stored.of(UP).block) == ("fp8-tensor", "nvfp4", 16)
    assert stored.of("lm_head") == UNQUANTIZED


def test_a_group_s_names_go_before_its_class() -> None:
    eight, four = Quantization(scheme="fp8-channel"), Quantization(scheme="nvfp4", block=16)
    groups = ((("Linear",), four), (("re:.*self_attn.*",), eight))

    for ordered in (groups, groups[::-1]):
        stored = Quantization(scheme="nvfp4", groups=ordered)
        assert [stored.of(module).scheme for module in (Q_PROJ, UP)] == ["fp8-channel", "nvfp4"]


def test_equal_schemes_are_equal_however_they_are_written() -> None:
    one, other = (Quantization(scheme="fp8-tensor", ignored=("lm_head",), mixed=()) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize(("pattern", "where"), list(product([r"re:(?=a)b", r"re:(a)\1"], ["ignore", "targets"])))
def test_expressions_that_take_more_than_linear_time_are_refused_by_their_field(pattern: str, where: str) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        checked_patterns([pattern], where)

    assert refusal.value.field == f"model_config.quantization_config.{where}"


def test_a_block_has_a_length() -> None:
    # huggingface.co/deepseek-ai/DeepSeek-V3: weight_block_size [128, 128]
    assert block_length(ConfigReader({"weight_block_size": [128, 128]}), "weight_block_size") == 128
    assert block_length(ConfigReader({}), "weight_block_size") == 0
    with pytest.raises(UnsupportedModelError, match="weight_block_size"):
        block_length(ConfigReader({"weight_block_size": [0, 128]}), "weight_block_size")
    for lengths in ([128], [128, 128, 1]):
        with pytest.raises(UnsupportedModelError, match="weight_block_size"):
            block_length(ConfigReader({"weight_block_size": lengths}), "weight_block_size")


def test_every_scheme_of_a_checkpoint_is_told() -> None:
    blocks = Quantization(scheme="fp8-block", block=128)

    assert Quantization(scheme="mxfp4", block=32, expert_scheme="fp8-block").schemes == {"mxfp4", "fp8-block"}
    assert Quantization(scheme="none", groups=((("Linear",), blocks),)).schemes == {"none", "fp8-block"}
    assert Quantization(scheme="nvfp4", mixed=(("model.layers.0.mlp", "fp8-block", 128),)).schemes == {
        "nvfp4",
        "fp8-block",
    }
