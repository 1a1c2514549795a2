"""Fields of a config: under any of their names, in the wrapper where shared, refused by name."""

import pytest

from service.engine.config_reader import MAX_ENTRIES, ConfigReader, text_reader
from service.engine.errors import EngineError, MissingConfigFieldError, UnsupportedModelError


def test_the_first_stated_synonym_counts() -> None:
    reader = ConfigReader({"n_layer": 12, "num_layers": 24, "hidden_size": None, "n_embd": 768})

    assert reader.layers("num_hidden_layers", "n_layer", "num_layers") == 12
    assert reader.positive("hidden_size", "n_embd") == 768


def test_shared_fields_are_read_from_around_the_language_model() -> None:
    reader = text_reader({"text_config": {"hidden_size": 64}, "hidden_size": 32, "tie_word_embeddings": True})

    assert reader.positive("hidden_size") == 64
    assert reader.flag("tie_word_embeddings")
    assert reader.own("tie_word_embeddings") is None
    assert reader.outer("tie_word_embeddings") is True


def test_a_language_model_two_levels_down_is_read() -> None:
    assert text_reader({"thinker_config": {"text_config": {"vocab_size": 8}}}).positive("vocab_size") == 8


@pytest.mark.parametrize("stated", [-1, 1.5, "12", True, [12], 1 << 41])
def test_what_is_no_whole_number_is_refused_by_its_field(stated: object) -> None:
    with pytest.raises(MissingConfigFieldError) as refusal:
        ConfigReader({"hidden_size": stated}).integer("hidden_size")

    assert refusal.value.field == "model_config.hidden_size"
    assert refusal.value.accepted is not None


@pytest.mark.parametrize(
    "ask",
    [
        lambda reader: reader.positive("field"),
        lambda reader: reader.text("field"),
        lambda reader: reader.integer("field"),
    ],
)
def test_what_nobody_states_is_missing(ask: object) -> None:
    assert callable(ask)
    with pytest.raises(MissingConfigFieldError, match="field"):
        ask(ConfigReader({}))


def test_zero_is_no_size_and_too_many_layers_are_refused() -> None:
    with pytest.raises(EngineError, match="hidden_size"):
        ConfigReader({"hidden_size": 0}).positive("hidden_size")
    with pytest.raises(EngineError, match="num_hidden_layers"):
        ConfigReader({"num_hidden_layers": 1_001}).layers("num_hidden_layers")


def test_lists_have_one_type_and_an_end() -> None:
    assert ConfigReader({"kinds": ["a", "b"]}).strings("kinds") == ("a", "b")
    assert ConfigReader({}).integers("sizes") is None
    with pytest.raises(MissingConfigFieldError):
        ConfigReader({"kinds": ["a", 1]}).strings("kinds")
    with pytest.raises(UnsupportedModelError, match="entries"):
        ConfigReader({"sizes": [1] * (MAX_ENTRIES + 1)}).integers("sizes")


def test_a_stated_name_is_told_from_a_value() -> None:
    reader = ConfigReader({"rope_scaling": None}).restated({"hidden_size": 8})

    assert reader.states("rope_scaling")
    assert not reader.states("rope_theta")
    assert reader.values() == {"rope_scaling": None, "hidden_size": 8}
