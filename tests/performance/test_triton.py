"""Attention of gpt-oss on GPUs before Hopper: by a kernel of few rows, which long prompts wait for."""

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import Deployed, EngineName, Layout, StatedSettings, deployed, plan_replica
from service.engine.time.records import ATTENDED
from service.performance.estimated import estimated_step_tables, note_of_kernels
from service.performance.kernel_tables import in_process
from service.performance.known import Knowledge


def of(catalog: Snapshot, model: str, gpu: str = "a100-sxm-80gb", engine: EngineName = "vllm") -> Deployed:
    plan = plan_replica(
        catalog.model(model), catalog.gpu(gpu), Layout(), StatedSettings(), rules_for(engine),
        input_tokens=1_000, output_tokens=100,
    )  # fmt: skip
    return deployed(plan)


def more_s(key: Deployed, tokens: float) -> float:
    """Return what a prompt token takes more that attends to so many tokens more. [s]."""
    attention = estimated_step_tables(key).attention
    return (attention[-1] - attention[-2]) / (ATTENDED[-1] - ATTENDED[-2]) * tokens


def test_a_prompt_of_gpt_oss_is_read_as_slowly_as_it_was_measured(catalog: Snapshot) -> None:
    """14,000 attended tokens more took 73 us a token: GPUStack performance lab, vLLM 0.11 on one A100."""
    assert 70e-6 < more_s(of(catalog, "gpt-oss-20b"), 14_000) < 76e-6


def test_other_models_engines_and_gpus_have_faster_kernels(catalog: Snapshot) -> None:
    slow = of(catalog, "gpt-oss-20b")

    assert "Triton reads prompts on a100-sxm-80gb" in note_of_kernels(slow)
    others: tuple[tuple[str, EngineName], ...] = (("a100-sxm-80gb", "sglang"), ("h100-sxm-80gb", "vllm"))
    for gpu, engine in others:
        fast = of(catalog, "gpt-oss-20b", gpu, engine)
        assert "Triton" not in note_of_kernels(fast)
        assert more_s(fast, 14_000) < 0.5 * more_s(slow, 14_000)
    assert "Triton" not in note_of_kernels(of(catalog, "qwen3-14b"))


def test_engines_that_share_what_is_known_keep_their_own_kernels(catalog: Snapshot) -> None:
    """Marlin unpacks int4 for vLLM alone, whoever is asked about first."""
    known = Knowledge(in_process())
    facts = catalog.model("llama-3.1-8b"), catalog.gpu("a100-sxm-80gb")
    plans = [
        plan_replica(
            *facts, Layout(), StatedSettings(weight_format="int4"), rules_for(engine),
            input_tokens=1_000, output_tokens=100,
        )
        for engine in ("tensorrt-llm", "vllm")
    ]  # fmt: skip
    of_trt, of_vllm = (known.estimates(deployed(plan)).estimated for plan in plans)

    assert of_trt.tokens[-1] < of_vllm.tokens[-1]
