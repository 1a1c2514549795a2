"""Whisper's encoder against the total of large-v3 (huggingface.co/openai/whisper-large-v3)."""

from service.engine.config_reader import ConfigReader
from service.engine.families.parts.sound import whisper, whisper_positions

LARGE = {"d_model": 1_280, "encoder_ffn_dim": 5_120, "encoder_layers": 32, "num_mel_bins": 128}


def test_the_large_encoder_has_its_637_million_parameters() -> None:
    """Qwen2-Audio (arxiv.org/abs/2407.10759) and others print it as 640 million."""
    total = whisper(ConfigReader(LARGE)) + whisper_positions(ConfigReader(LARGE), 1_280)

    assert round(total / 1e6) == 637
    assert whisper_positions(ConfigReader({"max_source_positions": 750}), 1_280) == 750 * 1_280
