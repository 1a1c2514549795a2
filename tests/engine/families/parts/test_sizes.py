"""Sizes under whatever name a config gives them."""

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.errors import EngineError
from service.engine.families.parts.sizes import hidden_size, nothing, num_hidden_layers


@pytest.mark.parametrize(
    ("layers", "width"), [("num_hidden_layers", "hidden_size"), ("n_layer", "n_embd"), ("n_layers", "d_model")]
)
def test_names_of_llama_gpt_2_and_dbrx_are_known(layers: str, width: str) -> None:
    reader = ConfigReader({layers: 40, width: 6_144})

    assert (num_hidden_layers(reader), hidden_size(reader), nothing(reader)) == (40, 6_144, 0)


def test_a_config_without_them_is_refused_by_the_first_name() -> None:
    with pytest.raises(EngineError) as refusal:
        hidden_size(ConfigReader({}))

    assert refusal.value.field == "model_config.hidden_size"
