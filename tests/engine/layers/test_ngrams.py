"""What Qwen 3.8 Flash Next adds to its streams by the last three tokens."""

from service.engine.inputs import Layout
from service.engine.layers import Checkpoint, NgramGate, NgramMemory, prime_rows
from tests.engine.layers.ranks import rank

# huggingface.co/Qwen/Qwen3.8-Flash-Next config.json
FLASH_NEXT = NgramMemory(
    num_streams=4,
    hidden_size=2_560,
    embedding_size=2_560,
    longest_ngram=3,
    conv_kernel_size=4,
    beside=Checkpoint(kernel="delta", tokens=64, key_width=128),
)


def test_the_state_is_nine_inputs_whole_on_every_rank() -> None:
    # vLLM 0.33 `ple_layer.py` (`get_state_shape`): "conv_kernel=self.conv_state_len + 1", 3 x 3 inputs of 10,240.
    assert FLASH_NEXT.state_bytes(rank()) == FLASH_NEXT.state_bytes(rank(8)) == 9 * 10_240 * 2
    assert FLASH_NEXT.state_bytes(rank(8, num_speculative_tokens=2)) == 11 * 10_240 * 2


def test_a_window_is_kept_where_the_state_beside_is() -> None:
    exporting = rank(keeps_states=True, exporting=frozenset({FLASH_NEXT.checkpoint}))

    assert FLASH_NEXT.caches(exporting)[0].pages_per_request == 3
    assert FLASH_NEXT.caches(rank(keeps_states=True))[0].pages_per_request == 2


def test_no_rank_splits_the_projection_and_no_gpu_holds_the_table() -> None:
    matrices = FLASH_NEXT.matrices(2_560, Layout(tensor_parallel_size=8), "model.layers.1.")

    # "kv_proj" of (10,240 + 2,560) x 2,560, three norms of 10,240 and four taps of as many channels.
    assert sum(it.elements for it in matrices) == 12_800 * 2_560 + 3 * 10_240 + 4 * 10_240
    assert FLASH_NEXT.divisors == ()
    assert FLASH_NEXT.live(8).per_token == 8 * FLASH_NEXT.live(1).per_token


def test_tables_have_as_many_rows_as_prime_numbers() -> None:
    # Qwen/Qwen3.8-Flash-Next: sixteen heads from 20,000,000 on; padded to 128 rows of 160 they are 51.2 GB in fp8.
    rows = prime_rows(20_000_000, 16)

    assert -(-rows // 128) * 128 * 160 == 51_200_245_760


def test_rows_of_large_tables_are_prime_as_well() -> None:
    # Referee: division by every smaller number finds 10^12 + 39 and + 61 first.
    assert prime_rows(10**12, 2) == 2 * 10**12 + 39 + 61
    # Carmichael numbers and squares of primes are none: 561 = 3 x 11 x 17, 1,373,653 is a strong pseudoprime to 2 and 3.
    assert prime_rows(561, 1) == 563
    assert prime_rows(1_373_653, 1) == 1_373_677
    assert prime_rows(1, 5) == 2 + 3 + 5 + 7 + 11


def test_a_gate_without_a_state_is_split_but_over_ranks_with_tokens_of_their_own() -> None:
    # deepseek-ai/DeepSeek-V4.1-Flash: `engram.wkv` of 25,600 x 6,144; vLLM 0.33 `engram.py` ("disable_tp").
    gate = NgramGate(num_streams=4, hidden_size=5_120, embedding_size=6_144)
    apart = Layout(tensor_parallel_size=8, data_parallel_size=2, expert_parallel=True)
    rows = [gate.matrices(5_120, layout, "")[0].rows for layout in (Layout(), Layout(tensor_parallel_size=8), apart)]

    assert rows == [25_600, 3_200, 25_600]
    assert gate.caches(rank(8)) == ()
    assert gate.live(8).per_token == 8 * (6_144 + 5 * 5_120)
