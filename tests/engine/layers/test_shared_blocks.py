"""Zamba 2's shared blocks and the adapters of their uses."""

from dataclasses import replace

from service.engine.layers import SharedBlocks

# The defaults of Hugging Face's Zamba2Config, as in tests/engine/families/zamba-2.json.
ZAMBA_2 = SharedBlocks(
    num_blocks=1, num_uses=9, attention_width=5_120, intermediate_size=10_240, adapter_rank=128, adapts_attention=False
)


def test_blocks_count_once_and_adapters_for_every_use() -> None:
    matrices = ZAMBA_2.matrices(2_560, 1)
    adapters = sum(it.elements for it in matrices if it.name == "adapters")

    assert adapters == 9 * 128 * (2_560 + 2 * 10_240)
    assert sum(it.elements for it in replace(ZAMBA_2, num_blocks=2).matrices(2_560, 1)) == (
        2 * sum(it.elements for it in matrices) - adapters
    )


def test_attention_may_be_adapted_too() -> None:
    plain, adapted = (
        sum(it.elements for it in replace(ZAMBA_2, adapts_attention=adapts).matrices(2_560, 1))
        for adapts in (False, True)
    )

    assert adapted - plain == 9 * 3 * 128 * 2 * 5_120


def test_ranks_share_the_block() -> None:
    whole, half = (sum(it.elements for it in ZAMBA_2.matrices(2_560, tp) if it.is_linear) for tp in (1, 2))

    assert half < whole
    assert 2 * half >= whole
