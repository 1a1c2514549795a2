"""What kernels are asked to read, and what is refused for want of one."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Layout, StatedSettings, plan_replica
from service.engine.engines.device import AMPERE, HOPPER, Device
from service.engine.engines.kernel import AskedCache
from service.engine.errors import RefusedStartError
from service.engine.memory.kernels import asked_cache, hybrid_alignment, kernels_of


@pytest.mark.parametrize(
    ("dtype", "is_own", "kind"),
    [("auto", False, "model"), ("bf16", False, "model"), ("fp8", False, "fp8"), ("fp8", True, "checkpoint_fp8")],
)
def test_who_asked_for_fp8_is_known(catalog: Snapshot, dtype: str, *, is_own: bool, kind: str) -> None:
    llama = catalog.model("llama-3.1-8b").architecture
    asked = asked_cache(llama, dtype, is_checkpoints_dtype=is_own, is_text_only=False, ranks=1, block_size=None)  # type: ignore[arg-type]

    assert asked.kind == kind


def test_layers_alike_have_one_kernel(catalog: Snapshot) -> None:
    kernels = kernels_of(catalog.model("llama-3.1-8b").architecture, AskedCache(), Device(capability=HOPPER))

    assert [kernel.name for kernel in kernels] == ["FLASH_ATTN"]


def test_sparse_latents_are_refused_before_hopper_by_their_name(catalog: Snapshot) -> None:
    with pytest.raises(
        RefusedStartError, match=r"no kernel for sparse latent attention on compute capability 8\.0"
    ) as refusal:
        kernels_of(catalog.model("deepseek-v3.2").architecture, AskedCache(), Device(capability=AMPERE))

    assert refusal.value.field == "gpu"


def test_latents_beside_states_are_read_in_longer_blocks(catalog: Snapshot) -> None:
    device = Device(capability=HOPPER)

    assert hybrid_alignment(catalog.model("deepseek-v3").architecture, device) == 128
    assert hybrid_alignment(catalog.model("llama-3.1-8b").architecture, device) == 1


@pytest.mark.parametrize(("block_size", "is_refused"), [(16, True), (32, True), (64, False), (None, False)])
def test_stated_blocks_that_no_kernel_reads_are_refused(
    catalog: Snapshot,
    block_size: int | None,
    is_refused: bool,  # noqa: FBT001 - a column
) -> None:
    # vLLM 0.33 `validate_configuration`: "block_size not supported" by any sparse kernel of Hopper
    model, gpu = catalog.model("deepseek-v3.2"), catalog.gpu("h200")
    question = (model, gpu, Layout(tensor_parallel_size=8), StatedSettings(block_size=block_size))

    if is_refused:
        with pytest.raises(RefusedStartError, match=f"blocks of {block_size} tokens") as refusal:
            plan_replica(*question, rules_for("vllm", "0.33"))
        assert refusal.value.field == "block_size"
    else:
        assert plan_replica(*question, rules_for("vllm", "0.33")).kv_cache.block_size == 64


def test_ranks_of_context_need_a_kernel_that_puts_them_together(catalog: Snapshot) -> None:
    # vLLM 0.33 `AttentionBackend.supports_dcp`: FlashAttention's and FlashInfer's, neither of which runs on Turing
    question = (catalog.model("qwen3-8b"), catalog.gpu("t4"), Layout(tensor_parallel_size=16))

    with pytest.raises(RefusedStartError, match="decode_context_parallel_size=2"):
        plan_replica(
            question[0],
            question[1],
            replace(question[2], decode_context_parallel_size=2),
            StatedSettings(),
            rules_for("vllm", "0.33"),
        )
    assert plan_replica(*question, StatedSettings(), rules_for("vllm", "0.33")).weights_fit
