"""Kernels of latents, as vLLM 0.33 `v1/attention/backends/mla/` states what each supports."""

from dataclasses import replace

import pytest
from packaging.version import Version

from service.engine.engines.device import AMPERE, HOPPER, Device
from service.engine.engines.kernel import AskedCache, CacheKind
from service.engine.engines.latent_kernels import latent_kernel, records_kernel, sparse_kernel
from service.engine.engines.plans import plan_of
from service.engine.engines.platforms import Loads
from service.engine.layers import LatentAttention

BLACKWELL, WORKSTATION = (10, 0), (12, 0)
DEEPSEEK = LatentAttention(  # huggingface.co/deepseek-ai/DeepSeek-V3
    num_attention_heads=128,
    q_lora_rank=1_536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)
NEED = DEEPSEEK.kernel_needs[0]


@pytest.mark.parametrize(
    ("capability", "is_fp8", "name"),
    [
        (HOPPER, False, "FLASH_ATTN_MLA"),
        (HOPPER, True, "FLASHMLA"),
        (BLACKWELL, False, "FLASHINFER_MLA"),
        (AMPERE, False, "TRITON_MLA"),
        (WORKSTATION, True, "TRITON_MLA"),
    ],
)
def test_a_generation_has_its_kernel_of_dense_latents(capability: tuple[int, int], *, is_fp8: bool, name: str) -> None:
    asked = AskedCache(kind="fp8" if is_fp8 else "model")

    assert latent_kernel(NEED, asked, Device(capability=capability)).name == name


@pytest.mark.parametrize(
    ("capability", "kind", "block_size", "name"),
    [
        (HOPPER, "fp8", 16, "TRITON_MLA"),
        (HOPPER, "fp8", 32, "TRITON_MLA"),
        (HOPPER, "fp8", 128, "FLASHMLA"),
        (HOPPER, "model", 32, "FLASH_ATTN_MLA"),
        (BLACKWELL, "model", 16, "TRITON_MLA"),
        (BLACKWELL, "fp8", 32, "FLASHINFER_MLA"),
    ],
)
def test_a_stated_block_passes_over_kernels_that_do_not_read_it(
    capability: tuple[int, int], kind: CacheKind, block_size: int, name: str
) -> None:
    """As vLLM 0.26 and 0.33 choose for DeepSeek V3 on simulated GPUs, with `--block-size`."""
    asked = AskedCache(kind=kind, block_size=block_size)

    assert latent_kernel(NEED, asked, Device(capability=capability)).name == name


def test_other_widths_are_cutlass_s_on_blackwell() -> None:
    assert latent_kernel(replace(NEED, nope_dim=96), AskedCache(), Device(capability=BLACKWELL)).blocks == (128,)


def test_blocks_were_fixed_up_to_0_17() -> None:
    old = Device(capability=HOPPER, plan=plan_of(Version("0.17")))

    assert latent_kernel(NEED, AskedCache(), old).blocks == (64,)
    assert latent_kernel(NEED, AskedCache(), Device(capability=HOPPER)).blocks != (64,)


@pytest.mark.parametrize("capability", [AMPERE, (8, 9)])
def test_no_kernel_runs_sparse_latents_before_hopper(capability: tuple[int, int]) -> None:
    assert sparse_kernel(NEED, AskedCache(), Device(capability=capability)) is None


def test_sparse_latents_in_fp8_are_packed_on_hopper_and_plain_on_blackwell() -> None:
    fp8 = AskedCache(kind="fp8")
    hopper = sparse_kernel(NEED, fp8, Device(capability=HOPPER))
    blackwell = sparse_kernel(NEED, fp8, Device(capability=BLACKWELL))

    assert hopper is not None
    assert blackwell is not None
    assert (hopper.is_packed, blackwell.is_packed, blackwell.blocks) == (True, False, (32,))


@pytest.mark.parametrize("kind", ["model", "fp8"])
@pytest.mark.parametrize("block_size", [1, 16, 64])
def test_rocm_reads_sparse_latents_plain_and_in_blocks_of_any_length(kind: CacheKind, block_size: int) -> None:
    # vllm-project/recipes, models/deepseek-ai/DeepSeek-V3.2-Exp.yaml: --block-size 1 on 8 x MI300X; `[1, 64]` and plain
    # fp8 of `v1/attention/backends/mla/rocm_aiter_mla_sparse.py`
    rocm = Device(is_vllm_on_cuda=False, loads=Loads(platform="ROCm"))

    kernel = sparse_kernel(NEED, AskedCache(kind=kind, block_size=block_size), rocm)

    assert kernel is not None
    assert (kernel.name, kernel.is_packed) == ("ROCM_AITER_MLA_SPARSE", False)


@pytest.mark.parametrize(
    ("capability", "version", "block", "records"),
    [
        (HOPPER, "0.33", 64, (584, 584, 576, 1)),
        (WORKSTATION, "0.33", 128, (584, 584, 576, 1)),
        (BLACKWELL, "0.33", 128, (528, 288, 512, 3_168)),
        (BLACKWELL, "0.32", 128, (528, 288, 512, 1)),
        (BLACKWELL, "0.30", 128, (528, 528, 512, 1)),
    ],
)
def test_a_generation_stores_a_token_as_its_kernel_wants_it(
    capability: tuple[int, int], version: str, block: int, records: tuple[int, int, int, int]
) -> None:
    """vLLM 0.30, 0.32 and 0.33 `models/deepseek_v41/attention.py`, `sparse_mla.py` ("64 if ... family(90) else 128")."""
    kernel = records_kernel(Device(capability=capability, plan=plan_of(Version(version))))
    stored = kernel.records

    assert kernel.blocks == (block,)
    assert (stored.window_bytes, stored.past_bytes, stored.page_alignment, stored.block_alignment) == records
