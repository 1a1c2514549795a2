"""BLIP-2's tower; its parameters are counted in `test_built.py`."""

from typing import Any

from service.engine import parse_architecture
from tests.engine.families.test_built import BUILT

NAME = "BLIP-2 with OPT 2.7B"
# transformers 5.24 `Blip2VisionConfig`, `Blip2QFormerConfig`
VISION = {
    "hidden_size": 1408, "intermediate_size": 6144, "num_hidden_layers": 39, "num_attention_heads": 16,
    "image_size": 224, "patch_size": 14,
}  # fmt: skip
QUERIES = {
    "hidden_size": 768, "num_hidden_layers": 12, "intermediate_size": 3072, "encoder_hidden_size": 1408,
    "cross_attention_frequency": 2,
}  # fmt: skip


def test_what_a_config_leaves_out_is_as_its_classes_have_it() -> None:
    config: dict[str, Any] = BUILT[NAME][0]
    stated = {**config, "vision_config": VISION, "qformer_config": QUERIES, "num_query_tokens": 32}

    assert parse_architecture(stated).encoder == parse_architecture(config).encoder


def test_ranks_divide_the_tower_but_not_the_queries() -> None:
    encoder = parse_architecture(BUILT[NAME][0]).encoder

    assert encoder is not None
    # transformers 5.24: 105,137,664 of the Q-Former, 24,576 of the queries, 1,968,640 of the projection
    assert encoder.whole_parameters > 105_137_664 + 24_576 + 1_968_640
    assert [divisor.size for divisor in encoder.divisors] == [16]
