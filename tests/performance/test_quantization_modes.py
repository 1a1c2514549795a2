"""Which measured kernels stand for a checkpoint."""

import pytest

from service.catalog.snapshot import Snapshot
from service.performance.quantization_modes import quantization_modes, stored_as
from tests.engine.time.published import benchmarked

V4 = "deepseek-v4-pro"


@pytest.mark.parametrize(("gpu", "kernels"), [("b200", "w4a8_mxfp4_mxfp8_trtllm"), ("h200", "w4a16_mxfp4")])
def test_experts_of_four_bits_beside_layers_in_fp8_have_kernels_of_their_own(
    catalog: Snapshot, gpu: str, kernels: str
) -> None:
    checkpoint = catalog.model(V4).checkpoints[0]
    modes = list(
        quantization_modes(
            checkpoint.quantization, catalog.gpu(gpu), "sglang", "fp8", weight_format=checkpoint.weight_format
        )
    )

    assert stored_as(checkpoint) == "fp8-block with experts in mxfp4"
    assert [modes[0][part] for part in ("gemm_quant_mode", "moe_quant_mode")] == ["fp8_block", kernels]
    assert "fp8_block" in {mode["moe_quant_mode"] for mode in modes[1:]}  # stands in where there are none


@pytest.mark.parametrize(
    ("gpu", "alone_s", "beside_s"),
    [
        ("b200", 4.26e-3, (9.95e-3, 11.56e-3)),
        ("b300", 4.12e-3, (12.25e-3, 10.97e-3)),
        ("h200", 5.64e-3, (25.83e-3, 23.12e-3)),
    ],
)
def test_sixteen_users_of_deepseek_v4_decode_as_fast_as_published_runs(
    catalog: Snapshot, gpu: str, alone_s: float, beside_s: tuple[float, float]
) -> None:
    """DeepSeek-V4-Pro on eight GPUs; in fp8 sixteen users on B200 were held to take 26 ms a token.

    A step keeps 3.15 tokens, by which all three GPUs' single users agree; the page prints two runs of sixteen.

    Source: github.com/sgl-project/sglang, docs_new/cookbook/autoregressive/DeepSeek/DeepSeek-V4.mdx, SGLang 0.5.15.
    """
    paces = [
        result.latency.tpot_s.mean
        for users in (1, 16)
        if (
            result := benchmarked(
                catalog, model=V4, gpu=gpu, gpus=8, users=users, drafted=3, kept=3.15, engine_version="0.5.15"
            )
        ).latency
        is not None
    ]

    assert paces == [pytest.approx(alone_s, rel=0.05), pytest.approx(sum(beside_s) / 2, rel=0.15)]


def test_vllm_decodes_compressed_latents_on_hopper_as_it_was_measured_to(catalog: Snapshot) -> None:
    """Two GH200 write 106 tokens of DeepSeek-V4-Flash a second for one user, without drafts; by a data sheet 200.

    Source: dnhkng.github.io, gh200-benchmarking-part-2, June 2026.
    """
    latency = benchmarked(
        catalog, model="deepseek-v4-flash", gpu="h200", gpus=2, users=1, drafted=0, kept=1.0, engine="vllm",
        num_speculative_tokens=0, speculative_acceptance_fraction=None, input_tokens=1_024,
    ).latency  # fmt: skip

    assert latency is not None
    assert latency.basis == "measured-kernels"
    assert latency.tpot_s.mean == pytest.approx(1 / 106, rel=0.2)
