"""Kernels of grouped attention, as vLLM 0.33 `platforms/cuda.py` and its backends' own checks pick them."""

from dataclasses import replace

import pytest

from service.engine.engines.device import AMPERE, HOPPER, TURING, Device
from service.engine.engines.grouped_kernels import flash_attn_version, grouped_kernel, scaled_kernel
from service.engine.engines.kernel import AskedCache, CacheKind
from service.engine.layers import GroupedQueryAttention, KernelNeed

BLACKWELL = (10, 0)


def need(head_dim: int = 128, *, sinks: bool = False) -> KernelNeed:
    layer = GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=2, head_dim=head_dim, v_head_dim=head_dim)
    return replace(layer.kernel_needs[0], has_sinks=sinks)


@pytest.mark.parametrize(
    ("head", "capability", "version"),
    [(128, AMPERE, 2), (128, HOPPER, 3), (512, HOPPER, 4), (128, BLACKWELL, 4), (192, BLACKWELL, 2)],
)
def test_generations_of_flash_attention(head: int, capability: tuple[int, int], version: int) -> None:
    assert flash_attn_version(need(head), AskedCache(), Device(capability=capability)) == version


@pytest.mark.parametrize(
    ("head", "sinks", "capability", "name"),
    [
        (128, True, HOPPER, "FLASH_ATTN"),  # gpt-oss
        (128, True, AMPERE, "TRITON_ATTN"),
        (80, False, BLACKWELL, "FLASH_ATTN"),  # FlashInfer runs 64, 128, 256 and 512 alone
        (512, False, AMPERE, "FLASHINFER"),
        (128, False, TURING, "TRITON_ATTN"),
    ],
)
def test_the_first_kernel_that_can_runs_it(head: int, *, sinks: bool, capability: tuple[int, int], name: str) -> None:
    kernel = grouped_kernel(need(head, sinks=sinks), AskedCache(), Device(capability=capability))

    assert kernel is not None
    assert kernel.name == name


def test_nothing_runs_narrow_heads_with_sinks_in_fp8_on_old_gpus() -> None:
    assert grouped_kernel(need(24, sinks=True), AskedCache(kind="fp8"), Device(capability=AMPERE)) is None


def test_wide_heads_in_fp8_are_read_in_blocks_of_64_on_hopper() -> None:
    kernel = grouped_kernel(need(512), AskedCache(kind="fp8"), Device(capability=HOPPER))

    assert kernel is not None
    assert (kernel.name, kernel.blocks) == ("FLASH_ATTN", (64,))


@pytest.mark.parametrize(
    ("kind", "head", "capability", "name"),
    [
        ("int8_per_token_head", 128, TURING, "TRITON_ATTN"),
        ("int4_per_token_head", 96, HOPPER, "TRITON_ATTN"),
        ("fp8_per_token_head", 128, AMPERE, ""),
        ("fp8_per_token_head", 128, HOPPER, "TRITON_ATTN"),
        ("int8_per_token_head", 24, HOPPER, ""),
        ("nvfp4", 128, BLACKWELL, "FLASHINFER"),
        ("nvfp4", 64, BLACKWELL, "FLASHINFER"),
        ("nvfp4", 64, HOPPER, ""),  # "fa2 prefill misreads an NVFP4 KV cache at head_size 64"
        ("nvfp4", 128, HOPPER, "FLASHINFER"),
        ("nvfp4", 96, BLACKWELL, ""),
    ],
)
def test_scales_beside_elements_are_read_by_one_kernel(
    kind: CacheKind, head: int, capability: tuple[int, int], name: str
) -> None:
    kernel = scaled_kernel(need(head), AskedCache(kind=kind), Device(capability=capability))

    assert (kernel.name if kernel else "") == name
