"""From a published config.json to an `Architecture`."""

from collections.abc import Mapping

from service.engine.architecture import Architecture, DecoderLayer, NoMlp
from service.engine.config.attention import hidden_size
from service.engine.config.context import longest_context_tokens
from service.engine.config.reader import architecture_name, text_reader
from service.engine.config.registry import attention_rule

DTYPES = {"bfloat16": "bfloat16", "float16": "float16", "half": "float16", "float32": "bfloat16", "float": "bfloat16"}


def parse_architecture(config: Mapping[str, object]) -> Architecture:
    """Return what a config describes.

    Raises:
        UnsupportedModelError: an architecture, layer type or option without a rule, by its name.
        MissingConfigFieldError: a field that the rules need and the config does not state.
    """
    name = architecture_name(config)
    rule = attention_rule(name)
    reader = text_reader(config)
    mixers = rule(reader)
    return Architecture(
        name=name,
        dtype=DTYPES.get(str(reader.raw("dtype", "torch_dtype") or "bfloat16").removeprefix("torch."), "bfloat16"),
        hidden_size=hidden_size(reader),
        vocab_size=reader.positive("vocab_size"),
        max_position_embeddings=longest_context_tokens(reader),
        layers=tuple(DecoderLayer(index=i, mixers=it, mlp=NoMlp()) for i, it in enumerate(mixers)),
    )
