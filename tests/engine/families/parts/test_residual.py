"""What runs beside the residual stream: Gemma 3n's embeddings (huggingface.co/google/gemma-3n-E4B-it), DeepSeek V4's streams."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.residual import hyper_connections, layer_embeddings


def test_a_layer_has_embeddings_of_its_own_unless_the_config_says_none() -> None:
    stated = layer_embeddings(ConfigReader({"hidden_size_per_layer_input": 256, "vocab_size_per_layer_input": 262_144}))

    assert stated is not None
    assert (stated.width, stated.vocab_size) == (256, 262_144)
    assert layer_embeddings(ConfigReader({})) == stated
    assert layer_embeddings(ConfigReader({"hidden_size_per_layer_input": 0})) is None
    assert layer_embeddings(ConfigReader({"hidden_size_per_layer_input": None})) is None


def test_hyper_connections_mix_so_many_streams() -> None:
    assert (hyper_connections(ConfigReader({"hc_mult": 4})), hyper_connections(ConfigReader({}))) == (4, 1)
