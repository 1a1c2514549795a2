"""The command-line flags that start the serving engine as it was sized."""

from typing import assert_never

from service.engine.inputs import EngineName
from service.engine.plan import MemoryPlan
from service.engine.questions import SettingsWish

Flags = tuple[str, ...]
NAMED_METHODS = ("mtp", "ngram")  # drafts that need no other checkpoint


def engine_args(engine: EngineName, plan: MemoryPlan, wish: SettingsWish) -> Flags:
    """Return the flags, by each engine's own names, that reproduce the plan.

    Sources:
        vLLM 0.33 `vllm serve --help`; SGLang server arguments; `trtllm-serve --help`.
    """
    match engine:
        case "vllm":
            return _vllm(plan, wish)
        case "sglang":
            return _sglang(plan)
        case "tensorrt-llm":
            return _tensorrt_llm(plan)
        case _ as never:
            assert_never(never)


def _vllm(plan: MemoryPlan, wish: SettingsWish) -> Flags:
    layout, settings = plan.layout, plan.settings
    flags = ["--tensor-parallel-size", str(layout.tensor_parallel_size)]
    flags += _unless_one("--pipeline-parallel-size", layout.pipeline_parallel_size)
    flags += _unless_one("--data-parallel-size", layout.data_parallel_size)
    flags += _unless_one("--decode-context-parallel-size", layout.decode_context_parallel_size)
    flags += ["--enable-expert-parallel"] if layout.expert_parallel else []
    flags += ["--max-model-len", str(settings.max_model_len)]
    if settings.kv_cache_memory_bytes is None:
        flags += ["--gpu-memory-utilization", str(settings.gpu_memory_utilization)]
    else:
        flags += ["--kv-cache-memory-bytes", str(settings.kv_cache_memory_bytes)]
    flags += ["--max-num-seqs", str(settings.max_num_seqs)]
    flags += ["--max-num-batched-tokens", str(settings.max_num_batched_tokens)]
    flags += ["--kv-cache-dtype", "fp8"] if settings.kv_cache_dtype == "fp8" else []
    flags += [] if wish.block_size is None else ["--block-size", str(wish.block_size)]
    if settings.num_speculative_tokens and settings.speculative_method in NAMED_METHODS:
        method, drafted = settings.speculative_method, settings.num_speculative_tokens
        flags += ["--speculative-config", f'{{"method": "{method}", "num_speculative_tokens": {drafted}}}']
    if settings.max_loras:
        flags += [
            "--enable-lora",
            "--max-loras",
            str(settings.max_loras),
            "--max-lora-rank",
            str(settings.max_lora_rank),
        ]
    if plan.checkpoint.hf_id is None and plan.checkpoint.weight_format == "fp8":
        flags += ["--quantization", "fp8"]  # the engine quantizes while it loads
    return tuple(flags)


def _sglang(plan: MemoryPlan) -> Flags:
    layout, settings = plan.layout, plan.settings
    flags = ["--tp-size", str(layout.tensor_parallel_size)]
    flags += _unless_one("--pp-size", layout.pipeline_parallel_size)
    flags += _unless_one("--dp-size", layout.data_parallel_size)
    flags += ["--ep-size", str(layout.tensor_parallel_size)] if layout.expert_parallel else []
    flags += ["--context-length", str(settings.max_model_len)]
    flags += ["--mem-fraction-static", str(settings.gpu_memory_utilization)]
    flags += ["--max-running-requests", str(settings.max_num_seqs)]
    flags += ["--chunked-prefill-size", str(settings.max_num_batched_tokens)]
    flags += ["--kv-cache-dtype", "fp8_e4m3"] if settings.kv_cache_dtype == "fp8" else []
    return tuple(flags)


def _tensorrt_llm(plan: MemoryPlan) -> Flags:
    layout, settings = plan.layout, plan.settings
    flags = ["--tp_size", str(layout.tensor_parallel_size)]
    flags += _unless_one("--pp_size", layout.pipeline_parallel_size)
    flags += ["--ep_size", str(layout.tensor_parallel_size)] if layout.expert_parallel else []
    flags += ["--max_seq_len", str(settings.max_model_len)]
    flags += ["--kv_cache_free_gpu_memory_fraction", str(settings.gpu_memory_utilization)]
    flags += ["--max_batch_size", str(settings.max_num_seqs)]
    flags += ["--max_num_tokens", str(settings.max_num_batched_tokens)]
    return tuple(flags)


def _unless_one(flag: str, size: int) -> list[str]:
    return [] if size == 1 else [flag, str(size)]
