"""Everything that a config lacks is named at once."""

from typing import Any

import pytest

from service.engine.errors import MissingConfigFieldError
from service.engine.families import parse_architecture
from service.engine.families.incomplete import OF_CONFIG

# meta-llama/Llama-3.1-8B's own numbers, published in its config.json.
LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4_096,
    "intermediate_size": 14_336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128_256,
}
THREE = {name: LLAMA[name] for name in ("num_hidden_layers", "num_key_value_heads", "head_dim")}
LACKS_NOTHING_ELSE = (
    ("hidden_size",),
    ("vocab_size",),
    ("architectures", "vocab_size"),
    ("num_attention_heads", "intermediate_size"),
    ("architectures", "num_attention_heads", "hidden_size", "intermediate_size", "vocab_size"),
)


def refused(config: dict[str, Any]) -> MissingConfigFieldError:
    with pytest.raises(MissingConfigFieldError) as refusal:
        parse_architecture(config)
    return refusal.value


@pytest.mark.parametrize("lacking", LACKS_NOTHING_ELSE)
def test_every_field_that_is_missing_is_named_with_what_is_accepted(lacking: tuple[str, ...]) -> None:
    error = refused({name: value for name, value in LLAMA.items() if name not in lacking})
    told = [error, *error.others]

    assert {each.field.removeprefix(OF_CONFIG) for each in told} == set(lacking)
    assert all(each.accepted for each in told)
    assert error.detail.startswith(
        "the config does not state " + ", ".join(each.field[len(OF_CONFIG) :] for each in told)
    )


def test_what_is_named_is_enough() -> None:
    error = refused(THREE)
    stated = {each.field.removeprefix(OF_CONFIG) for each in (error, *error.others)}

    assert len(parse_architecture(THREE | {name: LLAMA[name] for name in stated}).layers) == 32


def test_three_numbers_tell_the_cache_of_plain_attention_and_no_more() -> None:
    assert "131,072 bytes in 16 bit" in refused(THREE).detail  # the figure published for Llama 3.1 8B
    assert "KV cache" not in refused({**THREE, "architectures": ["LlamaForCausalLM"]}).detail
    assert "KV cache" not in refused({**THREE, "head_dim": "128"}).detail


def test_a_value_that_is_wrong_is_told_alone() -> None:
    error = refused({**THREE, "architectures": ["LlamaForCausalLM"], "num_attention_heads": "many"})

    assert (error.detail, error.others) == ("the config's num_attention_heads is the text 'many'", ())


def test_a_gated_network_without_a_width_is_not_guessed() -> None:
    assert refused({name: LLAMA[name] for name in LLAMA if name != "intermediate_size"}).field.endswith(
        "intermediate_size"
    )
