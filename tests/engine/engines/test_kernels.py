"""Which kernel runs a layer, as vLLM 0.33 `platforms/cuda.py` lists them, and the block that all accept."""

import pytest

from service.engine.engines.device import AMPERE, HOPPER, REFERENCE, TURING, Device
from service.engine.engines.kernel import AskedCache, Kernel
from service.engine.engines.kernels import common_block_size, kernel_of, raises_on_fp8, refuses_bfloat16
from service.engine.layers import GroupedQueryAttention

LLAMA = GroupedQueryAttention(num_attention_heads=32, num_key_value_heads=8, head_dim=128, v_head_dim=128)
NEED = LLAMA.kernel_needs[0]


@pytest.mark.parametrize(
    ("capability", "name"),
    [(AMPERE, "FLASH_ATTN"), (HOPPER, "FLASH_ATTN"), ((10, 0), "FLASHINFER"), (TURING, "TRITON_ATTN")],
)
def test_the_first_of_a_generation_s_list_runs_a_layer(capability: tuple[int, int], name: str) -> None:
    kernel = kernel_of(NEED, AskedCache(), Device(capability=capability))

    assert kernel is not None
    assert kernel.name == name


def test_triton_reads_fp8_from_ada_on() -> None:
    triton, fp8 = Kernel(name="TRITON_ATTN", is_triton=True), AskedCache(kind="fp8")

    assert raises_on_fp8(triton, fp8, Device(capability=AMPERE))
    assert not raises_on_fp8(triton, fp8, Device(capability=(8, 9)))
    assert not raises_on_fp8(triton, AskedCache(), Device(capability=AMPERE))


def test_a_block_is_one_that_every_kernel_reads() -> None:
    mixed = [Kernel(name="A", blocks=(16, 32)), Kernel(name="B", blocks=(128,)), Kernel(name="C", blocks=(48,))]

    assert common_block_size([]) == 16
    assert common_block_size(mixed[:2]) == 128
    assert all(common_block_size(mixed) % size == 0 for size in (16, 48, 128))


def test_bfloat16_came_with_ampere() -> None:
    assert refuses_bfloat16(Device(capability=TURING))
    assert not refuses_bfloat16(Device(capability=AMPERE))
    assert not refuses_bfloat16(REFERENCE)
