"""Granite Speech's conformer; its parameters are counted in `test_built.py`."""

from service.engine import parse_architecture
from tests.engine.families.test_built import BUILT

CONFIG = BUILT["Granite Speech 3.3 8B"][0]


def test_ranks_divide_its_letters() -> None:
    # vLLM 0.33 `granite_speech.py`: `out` is a ColumnParallelLinear of `output_dim` columns
    encoder = parse_architecture(CONFIG).encoder

    assert encoder is not None
    assert [divisor.size for divisor in encoder.divisors] == [348]


def test_plus_is_built_alike() -> None:
    # `granite_speech_plus.py`: another forward pass of the same encoder
    plus = parse_architecture({**CONFIG, "architectures": ["GraniteSpeechPlusForConditionalGeneration"]})

    assert plus.encoder == parse_architecture(CONFIG).encoder
