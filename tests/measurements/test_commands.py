"""Commands as people paste them: beginnings of flags, switches, a model behind the flags."""

import pytest

from service.measurements.reading import read_measurement

LOADED = "\nINFO 02-11 07:40:45 model_runner.py:1115] Loading model weights took 13.9476 GB"
# vllm-project/vllm issue 28228: of its flags one is a beginning, and one runs into the value before it.
KIMI = (
    "vllm serve cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit \\\n      --port 8111--gpu-memory-utilization 0.95 "
    "--max_model_len 120000 --tensor_parallel 2 --enable_prefix_caching \\\n      --max_num_batched_tokens 64000 "
    "--max-num-seqs 8 --trust-remote-code"
)


def test_a_beginning_stands_for_the_one_flag_that_has_it() -> None:
    assert read_measurement(KIMI + LOADED).settings == {
        "engine": "vllm", "model": "cyankiwi/Kimi-Linear-48B-A3B-Instruct-AWQ-4bit", "gpu_memory_utilization": 0.95,
        "max_model_len": 120_000, "tensor_parallel_size": 2, "enable_prefix_caching": True,
        "max_num_batched_tokens": 64_000, "max_num_seqs": 8,
    }  # fmt: skip


def test_a_beginning_of_several_flags_is_none_of_them() -> None:
    assert "max_num_seqs" not in read_measurement(KIMI.replace("--max-num-seqs", "--max-num") + LOADED).settings


@pytest.mark.parametrize(
    "command",
    [
        # vllm-project/vllm issue 13061
        "vllm serve --trust-remote-code --tensor_parallel_size 2 --gpu_memory_utilization=0.98 /root/r1-14b",
        "vllm serve --tensor_parallel_size 2 --gpu_memory_utilization=0.98 --trust-remote-code /root/r1-14b",
        "vllm serve --gpu_memory_utilization=0.98 --tensor_parallel_size 2 /root/r1-14b --trust-remote-code",
    ],
    ids=["after a value", "after a switch", "in between"],
)
def test_a_model_stands_behind_flags(command: str) -> None:
    assert read_measurement(command + LOADED).settings == {
        "engine": "vllm", "model": "/root/r1-14b", "tensor_parallel_size": 2, "gpu_memory_utilization": 0.98,
    }  # fmt: skip


@pytest.mark.parametrize(
    "command",
    [
        "vllm serve --served-model-name a/b c/d --tensor_parallel_size 2",
        "vllm serve --enforce-eager and the model did not load",
    ],
    ids=["a flag of several values", "a sentence"],
)
def test_not_every_word_behind_a_flag_is_a_model(command: str) -> None:
    assert "model" not in read_measurement(command + LOADED).settings


@pytest.mark.parametrize(
    ("switch", "said"),
    [
        ("--enforce-eager", {"enforce_eager": True}),
        (
            "--enable-expert-parallel --no-enable-prefix-caching",
            {"expert_parallel": True, "enable_prefix_caching": False},
        ),
        ("--language-model-only", {"language_model_only": True}),
        ("--disable-radix-cache", {"enable_prefix_caching": False}),
        ("--trust-remote-code", {}),
    ],
)
def test_a_switch_takes_no_value(switch: str, said: dict[str, bool]) -> None:
    """As vLLM 0.33 `engine/arg_utils.py` and SGLang 0.5.23 `server_args.py` declare them."""
    begun = {"engine": "vllm", "model": "m/n", "max_num_seqs": 8}

    assert read_measurement(f"vllm serve m/n {switch} --max-num-seqs 8{LOADED}").settings == begun | said


def test_what_was_left_away_is_no_switch() -> None:
    assert "enforce_eager" not in read_measurement(f"vllm serve m/n works without `--enforce-eager`{LOADED}").settings


def test_the_older_way_to_start_a_server_is_a_command() -> None:
    """As vllm-project/vllm issue 5176 begins."""
    command = (
        "python3 -m vllm.entrypoints.openai.api_server --model TheBloke/Mistral-7B-Instruct-v0.2-AWQ --max-model-len "
        "32768 --gpu-memory-utilization 0.8 --quantization awq --enable-prefix-caching"
    )

    assert read_measurement(command + LOADED).settings == {
        "engine": "vllm", "model": "TheBloke/Mistral-7B-Instruct-v0.2-AWQ", "max_model_len": 32_768,
        "gpu_memory_utilization": 0.8, "weight_format": "awq", "enable_prefix_caching": True,
    }  # fmt: skip


def test_dtypes_of_recurrent_states_are_read() -> None:
    # A published start-up of Nemotron-Cascade-2 under 0.20.1rc1.dev91, shortened.
    arguments = (
        "non-default args: {'model': 'chankhavu/Nemotron-Cascade-2-30B-A3B-NVFP4', 'kv_cache_dtype': 'fp8_e4m3', "
        "'mamba_ssm_cache_dtype': 'float32', 'max_num_seqs': 128}"
    )
    command = "vllm serve nvidia/Nemotron-H-8B --mamba-ssm-cache-dtype float32 --mamba-cache-dtype auto"

    assert read_measurement(arguments + LOADED).settings["mamba_ssm_cache_dtype"] == "float32"
    settings = read_measurement(command + LOADED).settings
    assert settings["mamba_ssm_cache_dtype"] == "float32"
    assert "mamba_cache_dtype" not in settings


def test_arguments_that_a_worker_prints_as_an_object_are_read() -> None:
    """runpod-workers/worker-vllm issue 276, shortened."""
    line = (
        "2026-03-11T17:57:27.811674918Z engine.py :28 2026-03-11 17:57:27,811 Engine args: AsyncEngineArgs(model="
        "'openai/gpt-oss-120b', model_weights='', tokenizer=None, kv_cache_dtype='auto', max_model_len=8192, "
        "tensor_parallel_size=1, decode_context_parallel_size=1, enable_lora=False, max_loras=1)"
    )
    settings = read_measurement(line + LOADED).settings

    assert (settings["model"], settings["max_model_len"]) == ("openai/gpt-oss-120b", 8_192)
    assert settings.keys() & {"kv_cache_dtype", "max_loras"} == set()


# https://github.com/dennislee22/vLLM-benchmarking, log/vllm-7B-2gpuA10080GB-0.5GRAM-same-node.log, as a terminal folded it.
FOLDED = """(APIServer pid=3761) INFO 09-03 02:11:14 [api_server.py:1805] vLLM API server version 0.10.1.1
(APIServer pid=3761) INFO 09-03 02:11:14 [utils.py:326] non-default args: {'model_tag': 'Qwen2-7B-Instruct', 'port': 8081, 'model': 'Qwe
n2-7B-Instruct', 'max_model_len': 16384, 'tensor_parallel_size': 2, 'gpu_memory_utilization': 0.5}
(APIServer pid=3761) INFO 09-03 02:11:29 [__init__.py:711] Resolved architecture: Qwen2ForCausalLM
(EngineCore_0 pid=3902) INFO 09-03 02:11:44 [core.py:74] Initializing a V1 LLM engine (v0.10.1.1) with config: model='Qwen2-7B-Instruct'
, speculative_config=None, tokenizer='Qwen2-7B-Instruct', skip_tokenizer_init=False, tokenizer_mode=auto, revision=None, override_neuron_config={},
 tokenizer_revision=None, trust_remote_code=False, dtype=torch.bfloat16, max_seq_len=16384, download_dir=None, load_format=auto, tensor_parallel_si
ze=2, pipeline_parallel_size=1, disable_custom_all_reduce=False, quantization=None, enforce_eager=False, kv_cache_dtype=auto, device_config=cuda, d
(VllmWorker TP1 pid=3975) INFO 09-03 02:12:04 [gpu_model_runner.py:2007] Model loading took 7.1217 GiB and 2.845758 seconds"""


def test_arguments_that_a_terminal_folded_are_read_whole() -> None:
    assert read_measurement(FOLDED).settings == {
        "engine": "vllm", "engine_version": "0.10.1.1", "model": "Qwen2-7B-Instruct", "max_model_len": 16384,
        "tensor_parallel_size": 2, "pipeline_parallel_size": 1, "gpu_memory_utilization": 0.5, "enforce_eager": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "non-default args: {'model': 'Qwen/Qwen3-8B'}\nmy note: gpu_memory_utilization=0.5",
        "LLM engine (v0.11.0) with config: model='Qwen/Qwen3-8B'\nmy note: gpu_memory_utilization=0.5",
        "non-default args: {'model': 'Qwen/Qwen3-8B',\n(Worker pid=1) INFO with gpu_memory_utilization=0.5",
    ],
)
def test_what_follows_arguments_is_none_of_them(text: str) -> None:
    weights = "Model loading took 15.27 GiB"

    assert "gpu_memory_utilization" not in read_measurement(f"{text}\n{weights}").settings


@pytest.mark.parametrize(
    ("stated", "adapters", "rank"),
    [
        ("'enable_lora': True, 'max_num_seqs': 1", 1, None),
        ("'enable_lora': True, 'max_lora_rank': 32", 1, 32),
        ("'enable_lora': True, 'max_loras': 4", 4, None),
        ("'max_num_seqs': 1", None, None),
    ],
)
def test_adapters_that_nobody_counted_are_one(stated: str, adapters: int | None, rank: int | None) -> None:
    """https://github.com/trietnguyeminh/Submission---EXACT--IJCNN, vllm_server.log: Qwen3-8B on two T4."""
    text = f"""(APIServer pid=228) INFO 06-13 20:05:05 [utils.py:278] non-default args: {{'dtype': 'float16', \
'tensor_parallel_size': 2, 'disable_custom_all_reduce': True, 'gpu_memory_utilization': 0.85, {stated}}}
(Worker_TP0 pid=300) INFO 06-13 20:06:37 [model_runner.py:295] Model loading took 7.7 GiB and 42.372507 seconds"""

    settings = read_measurement(text).settings

    assert (settings.get("max_loras"), settings.get("max_lora_rank")) == (adapters, rank)


def test_adapters_of_a_command_are_one() -> None:
    served = "vllm serve Qwen/Qwen3-8B --enable-lora --max-lora-rank 32"

    assert read_measurement(served + LOADED).settings["max_loras"] == 1
    assert "max_loras" not in read_measurement(served.replace("vllm serve", "sglang serve") + LOADED).settings
