"""What an attention kernel is to a memory plan: its name, the blocks it reads, and how it stores sparse latents."""

from dataclasses import dataclass
from typing import Literal

from service.engine.inputs import ScaledCacheDtype, is_scaled
from service.engine.layers import DEFAULT_BLOCK_SIZE, USUAL_RECORDS, Records

# Of the model's own dtype, in fp8 because that was asked for, in the checkpoint's own fp8, or with scales beside.
CacheKind = Literal["model", "fp8", "checkpoint_fp8", ScaledCacheDtype]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedCache:
    """What a kernel is asked to read, besides what the layer itself needs."""

    kind: CacheKind = "model"
    images_both_ways: bool = False  # tokens of one image see each other, later ones too
    context_ranks: int = 1  # that hold the tokens in turn
    block_size: int | None = None  # as stated; kernels that do not read it are passed over [tokens]
    is_hybrid: bool = False  # blocks must hold another layer's recurrent state as well

    @property
    def is_fp8(self) -> bool:
        """Return whether elements are fp8 and stand for themselves."""
        return self.kind in ("fp8", "checkpoint_fp8")

    @property
    def is_scaled(self) -> bool:
        """Return whether scales stand beside the elements."""
        return is_scaled(self.kind)

    @property
    def spreads_context(self) -> bool:
        """Return whether a kernel must put together what several ranks attend to."""
        return self.context_ranks > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """One attention kernel; `blocks` are the sizes of which it reads whole multiples. [tokens]."""

    name: str  # as the engine's log names it
    blocks: tuple[int, ...] = (DEFAULT_BLOCK_SIZE,)
    is_packed: bool = False  # reads sparse latents packed: fp8 values, scales, and 16-bit rotary values
    records: Records = USUAL_RECORDS  # of latents with a compressed past
    rows: int = 1  # of sparse latents that it reads as one page: blocks are whole pages apart [tokens]
    is_triton: bool = False
    refuses_fp8: bool = False  # is picked all the same, and raises

    def reads(self, block_size: int | None) -> bool:
        """Return whether the kernel reads stated blocks; any of its own where none are stated."""
        return block_size is None or any(block_size % size == 0 for size in self.blocks)
