"""vLLM since 0.21 lets nothing split blocks of 20 MiB and more while weights load (pull request 41268).

`v1/worker/gpu_worker.py` (`_scoped_allocator_max_split`): CUDA alone up to 0.30, ROCm too since 0.31.
"""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.formats.quantization import parse_quantization
from service.engine.inputs import EngineName, Layout
from service.engine.memory.weights import RankWeights, rank_weights

HALF_PRINTED_GIB = 0.01  # of two decimals, and of 8 MiB that libraries keep besides


def loaded(
    catalog: Snapshot,
    model: str,
    weight_format: str,
    gpu: str,
    engine: EngineName,
    version: str,
    positions: int = 32_768,
) -> RankWeights:
    facts = catalog.model(model)
    own = next(each for each in facts.checkpoints if each.weight_format == weight_format)
    tables = tuple(replace(table, positions=positions) for table in facts.architecture.rotary_tables)
    return rank_weights(
        replace(facts.architecture, rotary_tables=tables),
        layout=Layout(),
        quantization=own.quantization,
        device=device_of(catalog.gpu(gpu), rules_for(engine, version)),
    )


@pytest.mark.parametrize(
    ("model", "weight_format", "gpu", "version", "gib"),
    [
        # Qwen2.5-1.5B-Instruct: 28 layers of 52.5 and 26.25 MiB in blocks of 54 and 28. "Model loading took 2.8871 GiB"
        # (0.11.2, RTX 2000 Ada), "2.89 GiB" (0.20.2), "2.98 GiB" (0.28.0 on RTX 4090 D, 0.28.1 on Turing, 0.30.0 on RTX
        # 4070).
        ("qwen2.5-1.5b", "bf16", "rtx-2000-ada", "0.11.2", 2.8871),
        ("qwen2.5-1.5b", "bf16", "l4", "0.20.2", 2.89),
        ("qwen2.5-1.5b", "bf16", "rtx-4090", "0.28.0", 2.98),
        ("qwen2.5-1.5b", "bf16", "t4", "0.30.0", 2.98),
        # Qwen2.5-7B-Instruct: "Model loading took 14.25 GiB" (0.19.0 on H100).
        ("qwen2.5-7b", "bf16", "h100", "0.19.0", 14.25),
    ],
)
def test_weights_take_what_is_printed(
    catalog: Snapshot, model: str, weight_format: str, gpu: str, version: str, gib: float
) -> None:
    held = loaded(catalog, model, weight_format, gpu, "vllm", version)

    assert held.loaded_bytes / 2**30 == pytest.approx(gib, abs=HALF_PRINTED_GIB)


def test_integers_and_their_scales_are_tensors_of_their_own(catalog: Snapshot) -> None:
    """Qwen2.5-7B-Instruct-AWQ: "Model loading took 5.29 GiB" (0.21.0, Marlin; 5.2 in 0.19.0).

    64.75 and 32.375 MiB in blocks of 66 and 34, in 28 layers; embeddings and head of 1,039.5 in blocks of 1,040.
    """
    stated = {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}
    held = rank_weights(
        catalog.model("qwen2.5-7b").architecture,
        layout=Layout(),
        quantization=parse_quantization(stated),
        device=device_of(catalog.gpu("rtx-3090"), rules_for("vllm", "0.21.0")),
    )

    assert round(held.by_component["allocator_rests"] / 2**20, 1) == 28 * (66 + 34) - 28 * (64.75 + 32.375) + 1
    assert held.loaded_bytes / 2**30 == pytest.approx(5.29, rel=0.005)


@pytest.mark.parametrize(("gpu", "version", "gib"), [("h100", "0.25.1", 61.29), ("h200", "0.30", 61.43)])
def test_gpt_oss_holds_what_is_printed(catalog: Snapshot, gpu: str, version: str, gib: float) -> None:
    """Triton's kernels on Hopper: "Using 'TRITON' Mxfp4 MoE backend", "Model loading took 61.29 GiB memory"."""
    held = loaded(catalog, "gpt-oss-120b", "mxfp4", gpu, "vllm", version, positions=131_072)

    assert round(held.loaded_bytes / 2**30, 2) == gib


@pytest.mark.parametrize(
    ("gpu", "engine", "version", "is_whole"),
    [
        ("h100", "vllm", "0.20.2", False),
        ("h100", "vllm", "0.21", True),
        ("mi300x", "vllm", "0.30", False),
        ("mi300x", "vllm", "0.31", True),
        ("h100", "sglang", "0.5.23", False),
        ("h100", "tensorrt-llm", "1.2", False),
    ],
)
def test_whole_blocks_are_vllm_s(catalog: Snapshot, gpu: str, engine: EngineName, version: str, is_whole: bool) -> None:  # noqa: FBT001
    rests = loaded(catalog, "qwen2.5-1.5b", "bf16", gpu, engine, version).by_component["allocator_rests"]

    assert (rests > 90 * 2**20) is is_whole
