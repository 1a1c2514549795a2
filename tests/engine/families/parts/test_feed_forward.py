"""Each layer's network."""

from typing import Any

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import MissingConfigFieldError, UnsupportedModelError
from service.engine.families.parts.feed_forward import FeedForward, no_feed_forward
from service.engine.inputs import Layout
from service.engine.layers import DenseMlp, MoeMlp

DENSE: dict[str, Any] = {"hidden_size": 4_096, "intermediate_size": 14_336}
ROUTED: dict[str, Any] = {**DENSE, "num_experts_per_tok": 2}


def test_one_expert_is_a_dense_network() -> None:
    for stated in (DENSE, {**ROUTED, "num_local_experts": 1}, {**ROUTED, "n_routed_experts": None}):
        layers = FeedForward()(ConfigReader(stated), 4)
        assert [type(layer) for layer in layers] == [DenseMlp] * 4


@pytest.mark.parametrize("stated", [ROUTED, {**DENSE, "architectures": ["Qwen3MoeForCausalLM"]}])
def test_experts_without_their_number_are_refused_rather_than_left_out(stated: dict[str, Any]) -> None:
    """`Qwen3MoeConfig` of transformers builds 128 where none are stated; a dense network would be a tenth of it."""
    with pytest.raises(MissingConfigFieldError, match="num_local_experts"):
        FeedForward()(ConfigReader(stated), 4)


def test_mixtral_has_eight_experts_in_every_layer() -> None:
    """Mixtral of Experts (arxiv.org/abs/2401.04088), table 1: 8 experts, 2 of them for a token."""
    layers = FeedForward()(ConfigReader({**ROUTED, "num_local_experts": 8}), 32)

    assert {
        (type(layer), layer.num_experts, layer.num_experts_per_tok) for layer in layers if isinstance(layer, MoeMlp)
    } == {(MoeMlp, 8, 2)}
    assert len(layers) == 32


def test_a_list_states_the_width_of_each_layer() -> None:
    layers = FeedForward()(ConfigReader({**DENSE, "intermediate_size": [16, 32, 64]}), 3)

    assert [layer.intermediate_size for layer in layers if isinstance(layer, DenseMlp)] == [16, 32, 64]
    with pytest.raises(UnsupportedModelError, match="intermediate_size"):
        FeedForward()(ConfigReader({**DENSE, "intermediate_size": [16, 0, 64]}), 3)


def test_layers_may_only_mix_tokens() -> None:
    assert not any(layer.matrices(64, Layout(), "") for layer in no_feed_forward(ConfigReader({}), 3))
