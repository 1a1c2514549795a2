"""What layers with a state of fixed size have in common."""

import pytest

from service.engine.layers import GatedDeltaNet, Mamba1, Mamba2, RecurrentMixer, ShortConvolution
from tests.engine.layers.ranks import rank

MAMBA = Mamba1(intermediate_size=1_536, state_size=16, conv_kernel_size=4, time_step_rank=48)
MAMBA_2 = Mamba2(num_heads=128, head_dim=64, state_size=128, num_groups=8, conv_kernel_size=4, state_dtype="auto")
DELTA_NET = GatedDeltaNet(
    num_key_heads=16, num_value_heads=32, key_head_dim=128, value_head_dim=128, conv_kernel_size=4, state_dtype="auto"
)
CONVOLUTION = ShortConvolution(hidden_size=2_048, conv_kernel_size=3)


# vLLM 0.33 `MambaSpec`: one running state; one being written; one checkpoint where prefill exports states.
@pytest.mark.parametrize(
    ("layer", "keeps_states", "pages"),
    [(MAMBA, False, 1), (MAMBA, True, 2), (CONVOLUTION, True, 2), (MAMBA_2, True, 3), (DELTA_NET, True, 3)],
)
def test_pages_of_a_request_whatever_its_length(layer: RecurrentMixer, keeps_states: bool, pages: int) -> None:  # noqa: FBT001
    exporting = frozenset({layer.checkpoint} - {None})
    (plain,) = layer.caches(rank(keeps_states=keeps_states, exporting=exporting))
    (drafting,) = layer.caches(rank(keeps_states=keeps_states, exporting=exporting, num_speculative_tokens=4))

    assert plain.pages_per_request == pages
    assert drafting.pages_per_request == pages + 4
    assert plain.blocks_for(1, 0) == plain.blocks_for(1_000_000, 8_192) == pages


def test_a_state_is_exported_only_where_its_kernel_runs() -> None:
    (elsewhere,) = DELTA_NET.caches(rank(keeps_states=True))

    assert (elsewhere.pages_per_request, elsewhere.checkpoint_tokens) == (2, 0)


@pytest.mark.parametrize("layer", [MAMBA, MAMBA_2, DELTA_NET, CONVOLUTION])
def test_a_step_reads_and_writes_the_state_and_nothing_that_grows(layer: RecurrentMixer) -> None:
    work = layer.work(2, 1)

    assert work.state_bytes == 2 * layer.state_bytes(rank(2))
    assert (work.token_bytes, work.longest, work.decode_flop_per_pair) == (0, 0, 0)
    assert layer.caches(rank(2))[0].token_bytes == 0


@pytest.mark.parametrize("layer", [MAMBA, MAMBA_2, DELTA_NET, CONVOLUTION])
def test_a_recurrence_is_no_attention(layer: RecurrentMixer) -> None:
    assert layer.is_recurrent
    assert not layer.is_attention
    assert not layer.is_empty
    assert layer.spread.key_values == 0
