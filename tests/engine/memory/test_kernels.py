"""What kernels are asked to read, and what is refused for want of one."""

import pytest

from service.catalog.snapshot import Snapshot
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
    asked = asked_cache(llama, dtype, is_checkpoints_dtype=is_own, is_text_only=False, ranks=1)  # type: ignore[arg-type]

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
