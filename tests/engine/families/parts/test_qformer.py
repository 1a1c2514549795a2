"""Learnt queries that read what a tower saw or heard."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.qformer import query_transformer


def test_granite_speech_s_reader_has_the_parameters_that_transformers_builds() -> None:
    # transformers 5.24 `GraniteSpeechEncoderProjector` of granite-speech-3.3-8b: 37,796,864, with 3 queries of 1,024
    # and a projection to 4,096
    stated = {
        "num_hidden_layers": 2, "hidden_size": 1024, "encoder_hidden_size": 1024, "intermediate_size": 4096,
        "cross_attention_frequency": 1,
    }  # fmt: skip

    assert query_transformer(ConfigReader(stated)) == 37_796_864 - 3 * 1024 - 1025 * 4096
