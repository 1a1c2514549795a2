"""State-space mixers, against the states that vLLM 0.33 itself computes."""

from dataclasses import replace

import pytest

from service.engine.inputs import Layout
from service.engine.layers import Checkpoint, Mamba1, Mamba2
from tests.engine.layers.ranks import rank

# The defaults of Hugging Face's Mamba2Config and MambaConfig.
CODESTRAL = Mamba2(num_heads=128, head_dim=64, state_size=128, num_groups=8, conv_kernel_size=4, state_dtype="auto")
MAMBA_130M = Mamba1(intermediate_size=1_536, state_size=16, conv_kernel_size=4, time_step_rank=48)


def test_states_are_the_engine_s() -> None:
    # The oracle's rows at TP 1: shapes (3, 10,240) and (128, 64, 128); (3, 1,536) and (1,536, 16), all in bf16.
    assert CODESTRAL.state_bytes(rank()) == 2_158_592
    assert MAMBA_130M.state_bytes(rank()) == 58_368


def test_groups_are_extended_so_that_every_rank_has_its_own() -> None:
    one_group = replace(CODESTRAL, num_groups=1)

    assert CODESTRAL.convolved(4) == CODESTRAL.convolved(1) == 8_192 + 2 * 8 * 128
    assert one_group.convolved(4) == 8_192 + 2 * 4 * 128


# vLLM 0.33 `mamba_mixer2.py`: `(n_groups % self.tp_size) == 0 or n_groups == 1`
def test_ranks_divide_several_groups_and_repeat_one() -> None:
    assert [divisor.size for divisor in CODESTRAL.divisors] == [128, 8]
    assert [divisor.size for divisor in replace(CODESTRAL, num_groups=1).divisors] == [128]


def test_only_mamba_2_exports_states_and_keeps_inputs_of_drafts() -> None:
    drafting = rank(num_speculative_tokens=2)

    assert CODESTRAL.checkpoint == Checkpoint(kernel="mamba2", tokens=1)
    assert MAMBA_130M.checkpoint is None
    assert CODESTRAL.state_bytes(drafting) - CODESTRAL.state_bytes(rank()) == 2 * 10_240 * 2
    assert MAMBA_130M.state_bytes(drafting) == MAMBA_130M.state_bytes(rank())


@pytest.mark.parametrize("tp", [1, 2])
def test_mamba_130m_has_the_weights_of_its_checkpoint(tp: int) -> None:
    # huggingface.co/state-spaces/mamba-130m-hf: 129,135,360 parameters in 24 layers, 50,280 tokens and a norm of 768.
    matrices = MAMBA_130M.matrices(768, Layout(tensor_parallel_size=tp), "backbone.layers.0.")
    layers = 24 * (tp * sum(it.elements for it in matrices) + 768)

    assert layers + 50_280 * 768 + 768 == 129_135_360


def test_the_profiling_run_holds_projections_and_copies() -> None:
    # vLLM 0.33 `mamba_mixer2.py`: gate, inputs, B, C and time steps, the output, and two copies of what is convolved;
    # `mamba_mixer.py`: inputs and gate, and a copy of the inputs.
    assert CODESTRAL.live(1).per_token == (8_192 + 10_240 + 128) + 8_192 + 2 * 10_240
    assert MAMBA_130M.live(1).per_token == 3 * 1_536


def test_biases_stand_where_they_are_stated() -> None:
    def biases(layer: Mamba2 | Mamba1) -> dict[str, int]:
        return {it.name: it.biases for it in layer.matrices(768, Layout(), "") if it.biases}

    assert biases(CODESTRAL) == {"conv1d": 10_240}
    assert biases(replace(CODESTRAL, has_bias=True, has_conv_bias=False)) == {"in_proj": 18_560, "out_proj": 768}
    assert biases(MAMBA_130M) == {"conv1d": 1_536, "dt_proj": 1_536}
