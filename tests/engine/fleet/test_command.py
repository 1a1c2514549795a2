"""A command that starts: the checkpoint, the nodes, flags the version has, and the ledger's error as margin."""

import shlex
from dataclasses import replace

import pytest

from service.catalog.engine_flags import flags_of
from service.catalog.engine_rules import rules_for
from service.engine.answers.size import size
from service.engine.fleet.choice import deployments
from service.engine.fleet.command import Launch, launch
from service.engine.fleet.deployments import Deployment
from service.engine.fleet.margin import safe_settings
from service.engine.fleet.questions import SizeQuestion, StatedSettings
from service.engine.fleet.ranking import best
from service.engine.inputs import EngineName, StatedLayout
from service.engine.memory.plan import pool_error_bytes
from tests.engine.conftest import Asked, users

LONG = 30_000  # tokens of a prompt whose longest kin do not fit beside Llama 3.1 8B into 24 GB


def chosen(question: SizeQuestion) -> Deployment:
    return best(deployments(question), question)


def started(
    asked: Asked,
    model: str,
    gpu: str,
    engine: EngineName = "vllm",
    version: str | None = None,
    *,
    stated: StatedSettings | None = None,
    layout: StatedLayout | None = None,
) -> Launch:
    question = asked(
        model,
        gpu,
        load=users(8),
        rules=rules_for(engine, version),
        settings=stated or StatedSettings(),
        layout=layout or StatedLayout(),
        timers=None,
    )
    return launch(chosen(question), flags_of(engine, version))


def test_the_checkpoint_sized_is_the_one_that_is_served(asked: Asked) -> None:
    command = started(asked, "llama-3.3-70b", "h100", stated=StatedSettings(weight_format="fp8")).command

    assert str(command).startswith("vllm serve nvidia/Llama-3.3-70B-Instruct-FP8 --tensor-parallel-size ")


@pytest.mark.parametrize(
    ("engine", "program"),
    [
        ("vllm", "vllm serve "),
        ("sglang", "python -m sglang.launch_server --model-path "),
        ("tensorrt-llm", "trtllm-serve "),
    ],
)
def test_each_engine_is_started_by_its_own_program(asked: Asked, engine: EngineName, program: str) -> None:
    command = started(asked, "llama-3.1-8b", "h100", engine).command

    assert str(command).startswith(program + "meta-llama/Llama-3.1-8B-Instruct --")


@pytest.mark.parametrize("gpu", ["t4", "v100", "rtx-2080-ti"])
def test_gpus_without_bfloat16_are_told_to_compute_in_half(asked: Asked, gpu: str) -> None:
    assert "--dtype half" in str(started(asked, "llama-3.1-8b", gpu).command)
    assert "--dtype" not in str(started(asked, "llama-3.1-8b", "a100").command)


def test_requests_at_once_stay_within_the_blocks_of_states(asked: Asked) -> None:
    """vLLM: "max_num_seqs (1024) exceeds available Mamba cache blocks"."""
    deployment = chosen(asked("qwen3.6-27b", "h100", load=users(8), timers=None))
    seqs = safe_settings(deployment).settings.max_num_seqs

    assert deployment.plan.settings.max_num_seqs > deployment.plan.kv_cache.num_gpu_blocks >= seqs
    told = launch(deployment, frozenset())
    assert f"--max-num-seqs {seqs}" in str(told.command)
    assert any(note.endswith(": the engine refuses to start with that") for note in told.notes)


def test_a_step_has_a_token_for_each_request(asked: Asked) -> None:
    stated = StatedSettings(max_num_batched_tokens=512)

    assert "--max-num-seqs 512" in str(started(asked, "llama-3.1-8b", "h100", stated=stated).command)


def test_the_longest_context_keeps_the_ledger_s_error_as_margin(asked: Asked) -> None:
    deployment = chosen(asked("llama-3.1-8b", "rtx-4090", load=users(1, LONG), timers=None))
    plan, safe = deployment.plan, safe_settings(deployment)
    spare = 1 - safe.settings.max_model_len / plan.settings.max_model_len

    assert plan.kv_cache.max_concurrency == pytest.approx(1.0, abs=0.01)  # else there is nothing to keep
    assert spare == pytest.approx(pool_error_bytes(plan) / plan.memory.kv_cache_bytes, abs=0.02)
    lowered = f"the command has max_model_len {safe.settings.max_model_len}, not {plan.settings.max_model_len}: "
    assert safe.notes == (lowered + "with that it may not start where the ledger errs",)


def test_fewer_requests_than_were_sized_are_told(asked: Asked) -> None:
    """A layer that keeps a state needs a block for each request, and the pool may be smaller than predicted."""
    told = started(asked, "nemotron-h-8b", "a10g", stated=StatedSettings(max_num_seqs=400))

    assert "--max-num-seqs 400" not in str(told.command)
    assert any(note.startswith("the command has max_num_seqs ") for note in told.notes)


def test_a_context_that_was_stated_stays_and_a_missing_margin_is_said(asked: Asked) -> None:
    exact = chosen(asked("llama-3.1-8b", "rtx-4090", load=users(1, LONG), timers=None)).plan
    stated = StatedSettings(max_model_len=exact.settings.max_model_len)
    question = asked("llama-3.1-8b", "rtx-4090", load=users(1, LONG), settings=stated, timers=None)
    told = launch(chosen(question), frozenset())

    assert f"--max-model-len {exact.settings.max_model_len}" in str(told.command)
    assert told.notes[0].startswith("no margin: ")
    assert told.notes[0].endswith(f"; max_model_len {exact.settings.max_model_len} may be refused")


def test_sglang_starts_with_a_pool_that_holds_no_whole_context_and_refuses_requests(asked: Asked) -> None:
    """SGLang 0.5.22 `tp_worker.py`: `max_req_len = min(context_len - 1, kv_capacity - 1)`."""
    question = asked(
        "llama-3.1-8b",
        "rtx-4090",
        load=users(8),
        settings=StatedSettings(max_model_len=131_072),
        layout=StatedLayout(tensor_parallel_size=2),
        rules=rules_for("sglang"),
        timers=None,
    )
    told = launch(chosen(question), frozenset())

    assert told.notes[0].startswith("no margin: ")
    assert told.notes[0].endswith("; longer requests may be refused")


def test_a_whole_gpu_is_not_free_when_the_engine_starts(asked: Asked) -> None:
    told = started(asked, "llama-3.1-8b", "h100", stated=StatedSettings(gpu_memory_utilization=1.0))

    assert told.notes[0].startswith("gpu_memory_utilization 1 may be refused")


def test_only_flags_that_the_version_has_are_printed(asked: Asked) -> None:
    told = started(asked, "llama-3.1-8b", "h100", version="0.8.5", stated=StatedSettings(kv_cache_memory_bytes=10**10))

    assert "--kv-cache-memory-bytes" not in told.engine_args
    assert told.notes[0] == "this version of vllm has no --kv-cache-memory-bytes: it may start otherwise"


@pytest.mark.parametrize(("version", "tells"), [("0.6.4", True), ("0.7.3", True), ("0.8", False)])
def test_a_version_that_reads_prompts_whole_is_told_to_cut_them(asked: Asked, version: str, *, tells: bool) -> None:
    """vLLM 0.7.3 `config.py`: "max_num_batched_tokens (2048) is smaller than max_model_len (20000)"."""
    flag, longer = "--enable-chunked-prefill", StatedSettings(max_model_len=20_000)
    whole = StatedSettings(max_model_len=2_048, max_num_batched_tokens=4_096)

    assert (flag in started(asked, "llama-3.1-8b", "h100", version=version, stated=longer).engine_args) is tells
    assert flag not in started(asked, "llama-3.1-8b", "h100", version=version, stated=whole).engine_args


def test_every_node_of_a_replica_has_its_command(asked: Asked) -> None:
    two = StatedLayout(tensor_parallel_size=8, pipeline_parallel_size=2)
    lines = str(started(asked, "llama-3.1-405b", "h100", layout=two).command).splitlines()

    assert [line for line in lines if line.startswith("#")] == ["# on node 0 of 2", "# on node 1 of 2"]
    first, second = (shlex.split(line) for line in lines if not line.startswith("#"))
    assert second == [*first[:-1], "1", "--headless"]
    assert "--dist-init-addr" in str(started(asked, "llama-3.1-405b", "h100", "sglang", layout=two).command)
    assert "mpirun -n 16" in str(started(asked, "llama-3.1-405b", "h100", "tensorrt-llm", layout=two).command)
    ray = str(started(asked, "llama-3.1-405b", "h100", version="0.10.2", layout=two).command)
    assert "ray start --head" in ray.splitlines()[0]
    assert "--distributed-executor-backend ray" in ray


def test_copies_of_the_attention_are_counted_as_each_engine_counts_them(asked: Asked) -> None:
    copies = StatedLayout(tensor_parallel_size=1, data_parallel_size=8, expert_parallel=True)

    assert "--data-parallel-size 8 --enable-expert-parallel" in str(
        started(asked, "deepseek-v3", "h200", layout=copies).command
    )
    assert "--tp-size 8 --dp-size 8 --enable-dp-attention --ep-size 8" in str(
        started(asked, "deepseek-v3", "h200", "sglang", layout=copies).command
    )


def test_what_nobody_published_has_no_command(asked: Asked) -> None:
    told = started(asked, "llama-3.1-8b", "h100", stated=StatedSettings(weight_format="mxfp4"))

    assert told.command is None
    assert len(told.notes) == 1
    assert "no mxfp4 checkpoint of llama-3.1-8b-instruct is known here, and no flag" in told.notes[0]


def test_a_given_pool_has_no_error(asked: Asked) -> None:
    question = asked("llama-3.1-8b", "h100", settings=StatedSettings(kv_cache_memory_bytes=10**10), timers=None)
    plan = chosen(question).plan

    assert pool_error_bytes(plan) == 0
    assert pool_error_bytes(replace(plan, settings=replace(plan.settings, kv_cache_memory_bytes=None))) > 0


def test_copies_without_a_flag_have_no_command(asked: Asked) -> None:
    """TensorRT-LLM 1.3 starts copies of the attention by `enable_attention_dp` of its `--config` file alone."""
    layout = StatedLayout(tensor_parallel_size=1, data_parallel_size=8, expert_parallel=True)
    told = started(asked, "deepseek-v3", "h200", "tensorrt-llm", layout=layout)

    assert told.command is None
    assert any("enable_attention_dp" in note for note in told.notes)


@pytest.mark.parametrize(("version", "is_started"), [("0.8.5", False), ("0.33", True)])
def test_copies_over_servers_have_a_command_where_flags_join_them(
    asked: Asked, version: str, *, is_started: bool
) -> None:
    # vLLM 0.8.5 `arg_utils.py` has --data-parallel-size alone; --data-parallel-address and others came with 0.9.
    copies = StatedLayout(tensor_parallel_size=1, data_parallel_size=16, expert_parallel=True)
    told = started(asked, "deepseek-v3", "h100", "vllm", version, layout=copies)

    assert (told.command is not None) is is_started
    assert any("2 servers need --data-parallel-size-local" in note for note in told.notes) is not is_started


def test_a_cache_that_no_flag_of_the_version_names_has_no_command(asked: Asked) -> None:
    """TensorRT-LLM 1.2 `commands/serve.py` has no `--kv_cache_dtype`: pull request 11487 came with 1.3."""
    stated = StatedSettings(kv_cache_dtype="fp8")
    told, newer = (
        started(asked, "llama-3.1-8b", "h100", "tensorrt-llm", version, stated=stated) for version in (None, "1.3")
    )

    assert told.command is None
    assert any("kv_cache_config.dtype" in note for note in told.notes)
    assert "--kv_cache_dtype fp8" in str(newer.command)


@pytest.mark.parametrize(
    ("engine", "runtime"),
    [("vllm", "--distributed-executor-backend ray"), ("sglang", None), ("tensorrt-llm", "mpirun")],
)
def test_stages_that_servers_do_not_share_evenly(asked: Asked, engine: EngineName, runtime: str | None) -> None:
    """vLLM 0.33 `engine/arg_utils.py` (`--nnodes`: "must evenly divide the total world size"); SGLang 0.5.23 the same."""
    layout = StatedLayout(tensor_parallel_size=1, pipeline_parallel_size=13)
    told = started(asked, "llama-3.1-405b", "h100", engine, layout=layout)

    assert told.command is None if runtime is None else runtime in str(told.command)
    said = any("13 ranks are not as many on each of 2 servers" in note for note in told.notes)
    assert said is (runtime is None)


@pytest.mark.parametrize(("gpu", "starts"), [("a100-sxm-80gb", False), ("l40s", False), ("h200", True), ("b200", True)])
def test_compressed_attention_has_no_command_where_no_kernel_runs_it(asked: Asked, gpu: str, *, starts: bool) -> None:
    """vLLM 0.33 plans DeepSeek V4 everywhere; `v1/attention/ops/flashmla.py` has no sparse kernel below Hopper."""
    sized = size(asked("deepseek-v4-flash", gpu, load=users(4)))

    assert (sized.command is not None) is starts
    told = [each for each in sized.warnings if "compute capability 9.x, 10.x or 12.x" in each]
    assert bool(told) is not starts


@pytest.mark.parametrize(
    ("model", "gpu", "version", "kernels"),
    [
        ("deepseek-v4-flash", "h200", "0.5.19", "flashinfer_mxfp4"),
        ("deepseek-v4-flash", "b200", "0.5.19", "flashinfer_mxfp4"),
        ("deepseek-v4-flash", "rtx-pro-6000", "0.5.19", None),
        ("deepseek-v4-flash", "h200", "0.5.20", None),
        ("deepseek-v4-flash-base", "h200", "0.5.19", None),
        ("gpt-oss-120b", "h200", "0.5.19", None),
    ],
)
def test_kernels_that_sglang_does_not_find_are_named(
    asked: Asked, model: str, gpu: str, version: str, kernels: str | None
) -> None:
    """SGLang's issues 27497 and 33693: by itself it starts DeepSeek V4 into "AssertionError: Hidden size mismatch"."""
    words = shlex.split(str(started(asked, model, gpu, "sglang", version).command))
    named = words[words.index("--moe-runner-backend") + 1] if "--moe-runner-backend" in words else None

    assert named == kernels


@pytest.mark.parametrize(("engine", "starts"), [("vllm", True), ("sglang", True), ("tensorrt-llm", False)])
def test_adapters_that_no_flag_loads_have_no_command(asked: Asked, engine: EngineName, *, starts: bool) -> None:
    """TensorRT-LLM docs/source/features/lora.md: `lora_config` of the LLM API, or of a file of --config."""
    stated = StatedSettings(max_loras=2, max_lora_rank=16)
    question = asked("llama-3.1-8b", load=users(4), settings=stated, rules=rules_for(engine), timers=None)

    assert (size(question).command is not None) is starts


@pytest.mark.parametrize(("version", "starts"), [("0.8.1", False), ("0.8.2", True)])
def test_a_drafter_that_no_flag_names_is_not_left_out_of_a_command(asked: Asked, version: str, *, starts: bool) -> None:
    """Before 0.8.2 `--speculative-model` named it: without it no tokens are drafted, and the times are others."""
    drafts = StatedSettings(num_speculative_tokens=3, speculative_method="ngram")
    told = started(asked, "llama-3.1-8b", "h100", version=version, stated=drafts)

    assert ("--speculative-config" in str(told.command)) is starts
    assert (told.command is None) is not starts
    assert any("--speculative-model" in note for note in told.notes) is not starts


@pytest.mark.parametrize(("tokens", "alone", "starts"), [(256, False, False), (260, False, True), (256, True, True)])
def test_a_step_that_holds_no_image_whole_starts_for_text_alone(
    asked: Asked, tokens: int, *, alone: bool, starts: bool
) -> None:
    """An image of Gemma 3 is 260 tokens that see each other; vLLM: "Chunked MM input disabled but ... is larger"."""
    stated = StatedSettings(max_num_batched_tokens=tokens, max_num_seqs=8, language_model_only=alone)
    told = started(asked, "gemma-3-27b", "h100", stated=stated)

    assert (told.command is not None) is starts
    assert any("holds no image whole, of 260 tokens" in note for note in told.notes) is not starts


@pytest.mark.parametrize(("version", "starts"), [("0.9.2", False), ("0.10.2", True)])
def test_a_pool_that_no_flag_bounds_is_not_left_to_the_engine(asked: Asked, version: str, *, starts: bool) -> None:
    """Of 20 GB asked for, the engine's own share was printed, which is another pool."""
    told = started(
        asked, "llama-3.1-8b", "h100", version=version, stated=StatedSettings(kv_cache_memory_bytes=20 << 30)
    )

    assert (told.command is not None) is starts
    assert any("gpu_memory_utilization sizes the pool there" in note for note in told.notes) is not starts
