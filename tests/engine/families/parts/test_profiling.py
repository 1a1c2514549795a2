"""What is alive at once in a tower's widest layer."""

from service.engine.families.parts.profiling import Item, profiled
from service.engine.layers import Encoder

TOWER = Encoder(split_parameters=1, whole_parameters=1)
VISION = {"vision_config": {"hidden_size": 1_280, "intermediate_size": 3_420, "deepstack_visual_indexes": [8, 16]}}


def test_a_token_is_as_many_patches_as_are_merged() -> None:
    item = profiled(TOWER, VISION, Item(tokens=16_384, patches_per_token=4))

    assert item.max_tokens_per_item == 16_384
    assert item.split_elements_per_token == 4 * (2 * 3_420 + 3 * 1_280)
    assert item.whole_elements_per_token == 4 * 2 * 1_280


def test_a_gate_is_alive_beside_up_and_product() -> None:
    plain, gated = (
        profiled(TOWER, VISION, Item(tokens=1, patches_per_token=1, is_gated=gate)) for gate in (False, True)
    )

    assert gated.split_elements_per_token - plain.split_elements_per_token == 3_420


def test_each_deep_stack_puts_out_as_much_again() -> None:
    assert profiled(TOWER, VISION, Item(tokens=1, patches_per_token=1)).outputs == 3
    assert profiled(TOWER, {}, Item(tokens=1, patches_per_token=1)).outputs == 1
