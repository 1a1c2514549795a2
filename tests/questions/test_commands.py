"""Every model of the catalog has a command that starts by the rules of its version, or a reason why it has none."""

import argparse
import shlex

import pytest

from service.catalog.engine_flags import flags_of
from service.engine.answers.results import Sizing
from service.engine.arithmetic import GIB
from service.engine.errors import EngineError
from service.engine.inputs import EngineName
from service.questions.size import SizeQuery
from service.questions.sources import Sources
from tests.conftest import shared_catalog
from tests.questions.launches import faults

GPUS = ("h100", "h200", "b200", "a100", "l40s", "t4")
SEEDED = shared_catalog()
MOST_OF_A_CLASS = 8


def of_each_class(most: int) -> list[str]:
    """Return so many models of each class, spread over their names."""
    alike: dict[str, list[str]] = {}
    for name in sorted(SEEDED.model_entries):
        if not SEEDED.refusal(name):
            alike.setdefault(SEEDED.model(name).architecture.name, []).append(name)
    return sorted(name for names in alike.values() for name in names[:: -(-len(names) // most)])


MODELS = of_each_class(MOST_OF_A_CLASS)


def sized(sources: Sources, model: str, gpu: str, engine: EngineName = "vllm") -> Sizing:
    asked = SizeQuery(model=model, gpu=gpu, concurrent_requests=8, input_tokens=800, output_tokens=200, engine=engine)
    return asked.answer(sources).result


def parsed(engine: EngineName, command: str) -> argparse.Namespace:
    """Return what the engine's flags are set to; a flag that its newest version has not is an error."""
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    for flag in flags_of(engine, None):
        if flag not in ("--help", "--version"):
            parser.add_argument(flag, nargs="?", dest=flag)
    line = next(line for line in command.splitlines() if not line.startswith("#"))
    words = shlex.split(line)
    first = next(index for index, word in enumerate(words) if word.startswith("--"))
    return parser.parse_args(words[first:])


@pytest.mark.parametrize("model", MODELS)
def test_a_command_of_vllm_starts_or_its_absence_is_explained(sources: Sources, model: str) -> None:
    gpu = GPUS[MODELS.index(model) % len(GPUS)]
    try:
        answer = sized(sources, model, gpu)
    except EngineError as refused:
        is_gone = "no longer has" in refused.detail
        says_so = ("no kernel for sparse latent attention", "the kernels of its attention run on")
        has_no_kernel = any(said in refused.detail for said in says_so) and gpu == "a100"
        assert is_gone or has_no_kernel or gpu in ("t4", "l40s"), refused.detail  # older kernels
        return
    if not answer.feasible:
        assert answer.command is None
        return
    if answer.command is None:
        assert any(warning.startswith("no command: ") for warning in answer.warnings)
        return
    flags = vars(parsed("vllm", answer.command))
    blocks = answer.kv_cache.num_gpu_blocks
    longest = answer.kv_cache.estimated_max_model_len

    config, facts = SEEDED.model_entries[model].config, SEEDED.gpu(gpu)
    gpu_gib = answer.memory_per_gpu.total_bytes / GIB
    assert not list(
        faults(answer.command, config, gpu_gib, float(facts.compute_capability or 0), set(flags_of("vllm", None)))
    )
    if answer.kv_cache.state_bytes_per_request:
        assert int(flags["--max-num-seqs"]) <= blocks
    assert int(flags["--max-model-len"]) < longest or answer.kv_cache.max_concurrency >= 1.05
    assert not any("no margin" in warning for warning in answer.warnings)
    assert (flags["--dtype"] == "half") == (gpu == "t4")


@pytest.mark.parametrize(
    ("model", "gpu"),
    [("deepseek-v2", "h100"), ("falcon-7b", "t4"), ("kimi-k2.5", "h100"), ("qwen3-vl-30b-a3b-instruct", "t4")],
)
def test_a_pool_that_the_ledgers_error_may_leave_empty_is_no_deployment(sources: Sources, model: str, gpu: str) -> None:
    answer = sized(sources, model, gpu)
    spare = answer.memory_per_gpu.kv_cache_bytes - answer.kv_cache.bytes_per_request_per_gpu

    assert answer.feasible
    assert spare >= 0.26 * GIB  # what the README's accuracy table leaves unsure
    assert not any("no margin" in warning for warning in answer.warnings)


def test_a_class_that_the_version_no_longer_has_is_refused(sources: Sources) -> None:
    with pytest.raises(EngineError) as refused:
        sized(sources, "baichuan-7b", "h100")
    assert refused.value.accepted == "0.23, or older"

    asked = SizeQuery(
        model="baichuan-7b", gpu="h100", concurrent_requests=8, input_tokens=800, output_tokens=200,
        engine_version="0.23",
    )  # fmt: skip
    assert asked.answer(sources).result.feasible


def test_a_class_without_stages_is_not_cut_into_any(sources: Sources) -> None:
    asked = SizeQuery(
        model="gemma-3n-e4b-it", gpu="h100", concurrent_requests=8, input_tokens=800, output_tokens=200,
        pipeline_parallel_size=2,
    )  # fmt: skip
    with pytest.raises(EngineError) as refused:
        asked.answer(sources)
    assert refused.value.field == "pipeline_parallel_size"


@pytest.mark.parametrize("engine", ["sglang", "tensorrt-llm"])
@pytest.mark.parametrize("model", ["llama-3.3-70b", "qwen3-30b-a3b", "gpt-oss-20b", "deepseek-v3"])
def test_other_engines_have_every_flag_they_are_given(sources: Sources, engine: EngineName, model: str) -> None:
    command = sized(sources, model, "h200", engine).command

    assert command is not None
    assert any(value is not None for value in vars(parsed(engine, command)).values())


@pytest.mark.parametrize(("engine", "model"), [("sglang", "jamba-1.5-mini"), ("sglang", "falcon-7b")])
def test_a_model_without_a_class_is_refused(sources: Sources, engine: EngineName, model: str) -> None:
    with pytest.raises(EngineError, match="SGLang has no ") as refused:
        sized(sources, model, "h100", engine)
    assert refused.value.accepted == "vllm"


def test_a_backend_without_a_class_has_no_command_for_it(sources: Sources) -> None:
    answer = sized(sources, "smollm3-3b", "h100", "tensorrt-llm")

    assert answer.command is None
    assert "no command: trtllm-serve has no SmolLM3ForCausalLM" in answer.warnings
