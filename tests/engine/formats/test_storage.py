"""How kernels lay weights out; gpt-oss's and Qwen's published widths."""

from dataclasses import replace

import pytest

from service.engine.formats.matrix import Matrix
from service.engine.formats.storage import Storage, refined_block

UP = Matrix(module="experts.gate_up_proj", rows=5_760, columns=2_880, parts=2, inner_side="rows", biases=5_760)
DOWN = Matrix(module="experts.down_proj", rows=2_880, columns=2_880, inner_side="columns")


def test_each_fused_part_is_rounded_on_its_own() -> None:
    held = Storage(mxfp4_inner=128, mxfp4_width=256).padded(UP, "mxfp4")

    assert (held.rows, held.columns, held.biases) == (2 * 2_944, 3_072, 2 * 2_944)


def test_the_inner_side_of_what_leads_out_is_its_columns() -> None:
    held = Storage(mxfp4_inner=128, mxfp4_width=256).padded(DOWN, "mxfp4")

    assert (held.rows, held.columns) == (3_072, 2_944)


def test_tiles_of_gpt_oss_leave_other_experts_as_they_are() -> None:
    held = Storage(own_inner=256, own_width=256)
    padded = held.padded(replace(UP, own_multiple=64), "mxfp4")

    assert (padded.rows, padded.columns) == (2 * 3_072, 3_072)
    assert (held.padded(UP, "mxfp4").rows, held.padded(UP, "mxfp4").columns) == (UP.rows, UP.columns)


def test_experts_are_padded_in_the_schemes_of_their_class() -> None:
    """Qwen3-30B-A3B (huggingface.co/Qwen/Qwen3-30B-A3B: experts of 768 columns) on eight ranks: 96, in tiles of 128."""
    up = Matrix(module="experts.gate_up_proj", rows=192, columns=2_048, parts=2, inner_side="rows")
    by_class = Storage(inner_of=(("none", 128), ("nvfp4", 64)))

    assert by_class.padded(up, "none").rows == 256
    assert by_class.padded(up, "nvfp4").rows == 256
    assert by_class.padded(replace(up, rows=384), "nvfp4").rows == 384
    assert by_class.padded(up, "fp8-block") is up
    assert Storage(plain_inner=128).padded(up, "none") is up


def test_other_schemes_stay_as_they_are() -> None:
    assert Storage(mxfp4_inner=128, mxfp4_width=256, plain_inner=128).padded(UP, "fp8-block") is UP


@pytest.mark.parametrize("inner", [64, 96, 192, 256, 768, 1_536])
def test_a_refined_block_divides_the_part_and_the_checkpoint_s_block(inner: int) -> None:
    block = refined_block(128, inner, 2_048)

    assert block is not None
    assert (inner % block, 128 % block) == (0, 0)
    assert block >= 32


def test_a_part_below_the_finest_scale_has_no_block() -> None:
    assert refined_block(128, 48, 2_048) is None
