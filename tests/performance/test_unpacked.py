"""Weights that kernels unpack on the way: large batches wait for it on A100, small ones for bytes alone."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Deployed, EngineName, Layout, StatedSettings, WeightFormat, deployed, plan_replica
from service.engine.formats.quantization import parse_quantization
from service.engine.time.records import TOKENS
from service.performance.estimated import estimated_step_tables
from service.performance.kernel_tables import in_process
from service.performance.timers import Formats, build_timer
from service.performance.unpacked import MARLIN_FRACTION


def of(
    catalog: Snapshot, weight_format: WeightFormat, gpu: str = "a100-sxm-80gb", engine: EngineName = "vllm"
) -> Deployed:
    plan = plan_replica(
        catalog.model("llama-3.1-8b"), catalog.gpu(gpu), Layout(), StatedSettings(weight_format=weight_format),
        rules_for(engine), input_tokens=1_000, output_tokens=100,
    )  # fmt: skip
    return deployed(plan)


def tokens_s(key: Deployed, tokens: float) -> float:
    return estimated_step_tables(key).tokens[TOKENS.index(tokens)]


@pytest.mark.parametrize("weight_format", ["int4", "fp8"])
def test_marlin_multiplies_large_batches_at_its_published_rate(catalog: Snapshot, weight_format: WeightFormat) -> None:
    """vLLM pull request 2497: 141 TFLOP/s at 4,000 tokens and at 2,048, on matrices of 6.98 billion parameters here."""
    more_s = tokens_s(of(catalog, weight_format), TOKENS[-1]) - tokens_s(of(catalog, weight_format), TOKENS[-2])
    flop = 2 * 6.98e9 * (TOKENS[-1] - TOKENS[-2])

    assert flop / more_s == pytest.approx(141e12, rel=0.02)
    assert tokens_s(of(catalog, weight_format), 4_096.0) > tokens_s(of(catalog, "bf16"), 4_096.0)


def test_few_requests_read_fewer_bytes_all_the_same(catalog: Snapshot) -> None:
    assert (
        estimated_step_tables(of(catalog, "int4")).decode[0][0]
        < 0.5 * estimated_step_tables(of(catalog, "bf16")).decode[0][0]
    )


@pytest.mark.parametrize(("gpu", "engine"), [("l40s", "vllm"), ("a100-sxm-80gb", "tensorrt-llm")])
def test_where_unpacking_hides_it_costs_nothing(catalog: Snapshot, gpu: str, engine: EngineName) -> None:
    """vLLM pull request 24722 on Ada; aiconfigurator-core's int4_wo of TensorRT-LLM on A100: 0.93 to 0.98 of bfloat16."""
    int4, plain = (tokens_s(of(catalog, name, gpu, engine), TOKENS[-1]) for name in ("int4", "bf16"))

    assert int4 == pytest.approx(plain, rel=0.01)


def test_eight_bits_of_weights_alone_are_multiplied_in_16(catalog: Snapshot) -> None:
    """vLLM `MPLinearKernel`: 8-bit integers go the way of four, and are read in fewer bytes; W8A8 alone in its own."""
    facts = catalog.model("llama-3.1-8b")
    both, plain = (of(catalog, name, "l40s") for name in ("int8", "bf16"))
    gptq = parse_quantization({"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False, "sym": True})
    alone = replace(both, checkpoint=replace(facts.checkpoints[0], weight_format="int8", quantization=gptq))
    estimated = [estimated_step_tables(key) for key in (both, alone, plain)]
    large, few = ([tables.tokens[-1] for tables in estimated], [tables.decode[0][0] for tables in estimated])

    assert large[1] == pytest.approx(large[2], rel=0.01)
    assert large[0] < 0.7 * large[2]
    assert few[1] == pytest.approx(few[0], rel=0.02)
    assert few[1] < 0.7 * few[2]


def test_what_is_slower_than_16_bits_says_which_kernel_says_so(catalog: Snapshot) -> None:
    formats = Formats(in_process())

    assert (
        f"Marlin multiplies what it unpacks on a100-sxm-80gb at {MARLIN_FRACTION}"
        in build_timer(of(catalog, "int4"), formats).basis.note
    )
    assert "Marlin" not in build_timer(of(catalog, "bf16"), formats).basis.note
