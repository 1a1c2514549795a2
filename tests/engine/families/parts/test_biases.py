"""Which projections have biases, as configs state it."""

import pytest

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.biases import (
    as_stated,
    everywhere_unless,
    inputs_only,
    output_apart,
    stated_biases,
)
from service.engine.layers import Heads

BARE = Heads(queries=8, key_values=8, width=64, reads_other_cache=False, has_input_biases=False, has_output_bias=False)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, (False, False)),
        ({"attention_bias": True}, (True, True)),
        ({"qkv_bias": True}, (True, False)),
        ({"attention_out_bias": True}, (False, True)),
    ],
)
def test_usual_names(config: dict[str, bool], expected: tuple[bool, bool]) -> None:
    assert as_stated(ConfigReader(config), stated_biases(ConfigReader(config), BARE)) == expected


def test_families_differ_in_what_is_left_unsaid() -> None:
    nothing, without = ConfigReader({}), ConfigReader({"bias": False})

    # Qwen2 has biases on queries, keys and values that its config does not mention.
    assert inputs_only("bias")(nothing, (False, False)) == (True, False)
    assert inputs_only("bias")(without, (False, False)) == (False, False)
    assert everywhere_unless("bias")(nothing, (False, False)) == (True, True)
    assert output_apart(default=True)(nothing, (False, False)) == (True, False)
