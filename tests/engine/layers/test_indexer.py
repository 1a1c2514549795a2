"""The selector of sparse attention: its keys, and the tokens of a key that is not complete."""

from dataclasses import replace

import pytest

from service.engine.layers import SparseIndexer
from tests.engine.layers.ranks import rank

# huggingface.co/deepseek-ai/DeepSeek-V3.2 and zai-org/GLM-5.3-Flash config.json
DEEPSEEK = SparseIndexer(num_heads=64, head_dim=128, top_k=2_048, q_lora_rank=1_536)
GLM = SparseIndexer(num_heads=32, head_dim=128, top_k=2_048, q_lora_rank=1_536, pool=4, is_kept=True)


def test_a_key_for_every_token_has_no_ring() -> None:
    (keys,) = DEEPSEEK.caches(rank(block_size=64))

    assert (keys.kind, keys.page_size_bytes, keys.stride_alignment) == ("mla_attention", 64 * 132, 1)


@pytest.mark.parametrize(("drafted", "ring"), [(0, 4), (1, 8), (3, 8), (4, 8), (5, 16)])
def test_drafted_tokens_fit_beside_an_open_key(drafted: int, ring: int) -> None:
    # vLLM 0.33 `models/glm5next/common/attention.py`: kpool x next_power_of_2(cdiv(kpool + drafted, kpool))
    keys, open_key = GLM.caches(rank(block_size=1_152, num_speculative_tokens=drafted))

    assert keys.page_size_bytes == 1_152 // 4 * 132
    assert (open_key.block_size, open_key.page_size_bytes) == (ring, ring * 2 * 128 * 2)
    assert open_key.blocks_for(1_000_000, in_flight_tokens=16_384) == 1


def test_keys_beside_other_pages_stand_in_whole_reads_of_the_kernel() -> None:
    # vLLM 0.33 `v1/worker/utils.py`: 1,152 tokens are read by 128, which are 32 keys; 256 at once
    assert GLM.caches(rank(block_size=1_152))[0].stride_alignment == 32 * 132
    assert GLM.caches(rank(block_size=256))[0].stride_alignment == 1


def test_fewer_keys_are_scored() -> None:
    every = replace(GLM, pool=1)

    assert GLM.scan_bytes == every.scan_bytes / 4
    assert GLM.scan_flop_per_pair == every.scan_flop_per_pair / 4


def test_what_makes_a_key_of_several_is_part_of_the_model() -> None:
    # vLLM 0.33: `index_kpool_compress_gate` of [head_dim, hidden], `index_kpool_compress_ape` of [kpool, head_dim]
    pooled = {matrix.name: matrix.elements for matrix in GLM.matrices(4_096, "")}

    assert pooled["index_kpool_compress_gate"] == 128 * 4_096
    assert pooled["index_kpool_compress_ape"] == 4 * 128
    assert not any("kpool" in matrix.name for matrix in DEEPSEEK.matrices(7_168, ""))
