"""MiniCPM-V 4.6 and 4.7, which have one stack."""

import json
from pathlib import Path
from typing import Any

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families import parse_architecture
from service.engine.memory.parameters import num_parameters

PUBLISHED: dict[str, Any] = json.loads((Path(__file__).parent / "minicpm-v-4.6-published.json").read_text("utf-8"))
V46: dict[str, Any] = PUBLISHED["config"]
V47 = {**V46, "architectures": ["MiniCPMV4_7ForConditionalGeneration"]}


def test_4_7_has_the_stack_of_4_6() -> None:
    """vLLM 0.33 `minicpmv4_7.py`: "Same vision/LLM stack as MiniCPM-V 4.6, plus canvas 3D M-RoPE."."""
    assert num_parameters(parse_architecture(V47)) == num_parameters(parse_architecture(V46))


def test_a_tower_without_its_last_layer_is_refused_where_the_engine_leaves_it_out() -> None:
    """vLLM 0.33 `_drop_vision_last_layer`: 4.6 reads the field, and 4.7 keeps every layer."""
    with pytest.raises(UnsupportedModelError, match="drop_vision_last_layer"):
        parse_architecture({**V46, "drop_vision_last_layer": True})

    assert num_parameters(parse_architecture({**V47, "drop_vision_last_layer": True})) == num_parameters(
        parse_architecture(V47)
    )
