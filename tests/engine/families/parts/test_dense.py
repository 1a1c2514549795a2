"""Dense networks under the names that configs give their width."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.dense import Dense, named

GPT_2 = {"n_embd": 768}  # huggingface.co/openai-community/gpt2: n_inner null, four times the stream


def test_without_a_width_it_is_four_times_the_stream() -> None:
    assert Dense().read(ConfigReader(GPT_2), is_gated=False).intermediate_size == 3_072


def test_a_family_may_have_a_name_of_its_own() -> None:
    dense = Dense(width=named("ffn_width"))

    assert dense.read(ConfigReader({**GPT_2, "ffn_width": 100}), is_gated=True).intermediate_size == 100
    assert dense.read(ConfigReader({**GPT_2, "intermediate_size": 200}), is_gated=True).intermediate_size == 200


def test_biases_are_there_where_they_are_stated_or_not_taken_away() -> None:
    assert not Dense().read(ConfigReader(GPT_2), is_gated=False).has_bias
    assert Dense().read(ConfigReader({**GPT_2, "mlp_bias": True}), is_gated=False).has_bias
    assert Dense(biased_unless="with_bias").read(ConfigReader(GPT_2), is_gated=False).has_bias
    assert (
        not Dense(biased_unless="with_bias").read(ConfigReader({**GPT_2, "with_bias": False}), is_gated=False).has_bias
    )
