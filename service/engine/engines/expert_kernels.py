"""Which kernels run experts on a GPU, by how they store the weights.

    MXFP4            Hopper: Triton, before 0.12 Marlin; 10: FlashInfer TRT-LLM; others: Marlin
    unquantized      10: FlashInfer TRT-LLM; others: Triton
    fp8 in blocks    Triton, whose scales may be finer than the checkpoint's
    gpt-oss, SGLang  10: FlashInfer TRT-LLM; 12: FlashInfer CUTLASS, before 0.5.17 Marlin, before 0.5.14 Triton;
                     others: Triton
    gpt-oss, TensorRT-LLM  9: Triton; 10: TRT-LLM; others, and all before 1.2: CUTLASS
    no gate, SGLang  10: FlashInfer TRT-LLM, of Nemotron 3 in 16 bits, fp8 and NVFP4

Sources:
    vLLM 0.33 `model_executor/layers/fused_moe/oracle/` (`mxfp4.py`, `unquantized.py`, `fp8.py`),
    `model_executor/layers/quantization/mxfp4.py`; pull requests 28788 (0.12: Triton's kernels come with
    the package) and 46549 (0.25: the loaded scales are dropped); SGLang 0.5.9 to 0.5.23
    `layers/quantization/mxfp4.py` (`create_weights`), `layers/moe/fused_moe_triton/layer.py` ("hidden_size =
    round_up(hidden_size, 256)"; "requires intermediate_size to be a multiple of 128"), `server_args.py`,
    `arg_groups/overrides.py` (`_nemotron_h_overrides`), `arg_groups/model_overrides/gpt_oss.py`.
"""

from dataclasses import dataclass, replace

from service.engine.derived import derived
from service.engine.engines.device import Device
from service.engine.formats.storage import Storage

TILE = 128  # a rank's columns of an expert, in Marlin's and TRT-LLM's kernels
WIDE_TILE = 256  # the width of an expert, in the same
SCALE_ROWS = 256  # that Triton's shuffled scales are padded to
VALUE_LINE_BYTES = 64  # that its rows of values were padded to


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertKernels:
    """How one GPU's kernels hold experts, and what loading makes of MXFP4 ones."""

    storage: Storage
    widens_biases: bool = False  # to fp32
    value_line_bytes: int = 1  # that a row of values is padded to
    value_rows: int = 1  # that the rows are padded to
    scale_rows: int = 0  # shuffled scales are padded to so many rows; 0 where they stay as they are
    scale_groups: int = 1  # and to so many groups
    keeps_loaded_scales: bool = False  # beside the shuffled ones
    wide_scales_tile: int = 0  # fp4 experts in files of fp8 keep scales of four bytes, unless whole tiles
    copies_fp4_scales: bool = False  # of NVFP4, swizzled
    spreads_scales: bool = False  # of fp8 blocks: one for each row of a block
    unpacks_grouped: frozenset[str] = frozenset()  # schemes of projections multiplied in groups
    splits_blocks: bool = True  # of the allocator, whatever their size, while weights load
    shares_buffers: bool = True  # of activations between layers; Triton's MXFP4 kernel makes its own


@derived(1)
def expert_kernels(device: Device) -> ExpertKernels:
    """Return the kernels of a GPU."""
    kernels = _kernels(device)
    return replace(
        kernels,
        storage=replace(kernels.storage, copies_absorbed=device.plan.copies_absorbed),
        wide_scales_tile=device.wide_scales_tile,
        copies_fp4_scales=device.copies_fp4_scales,
        spreads_scales=device.unpacks_fp8,
        unpacks_grouped=_unpacked(device),
        splits_blocks=not device.is_vllm or device.loads.platform not in device.plan.whole_blocks_on,
    )


def _unpacked(device: Device) -> frozenset[str]:
    """Return how what is multiplied in groups is stored, where a GPU has no such kernel for it.

    Source: vLLM 0.33 `kernels/linear/mxfp8/deep_gemm.py` ("DeepGEMM MXFP8 BMM requires Blackwell."), `emulation.py`.
    """
    if device.is_vllm:
        return frozenset() if device.generation == 10 else frozenset({"mxfp8"})
    return frozenset({"fp8-block"}) if device.unpacks_grouped else frozenset()


def _kernels(device: Device) -> ExpertKernels:
    plan = device.plan
    tiles = device.own_tiles
    if tiles is not None:
        storage = Storage(
            own_inner=tiles.inner,
            own_width=tiles.width,
            own_out_width=tiles.out_width,
            ungated_inner=device.expert_tile,
        )
        return ExpertKernels(storage=storage, widens_biases=tiles.widens_biases, shares_buffers=tiles.shares_buffers)
    if device.generation == 9 and plan.triton_runs_experts:
        return ExpertKernels(
            storage=Storage(),
            widens_biases=True,
            value_line_bytes=VALUE_LINE_BYTES if plan.pads_expert_values else 1,
            value_rows=plan.expert_value_rows,
            scale_rows=SCALE_ROWS,
            scale_groups=plan.expert_scale_multiple,
            keeps_loaded_scales=not plan.drops_expert_scales,
            shares_buffers=False,
        )
    on_ten = device.generation == 10
    storage = Storage(
        mxfp4_inner=TILE,
        mxfp4_width=WIDE_TILE,
        plain_inner=TILE if on_ten and plan.pads_plain_experts else 1,
        keeps_wide_routers=not on_ten and plan.keeps_wide_routers,
    )
    return ExpertKernels(storage=storage, widens_biases=on_ten)
