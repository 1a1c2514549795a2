"""The command-line flags that start the serving engine as it was sized."""

from collections.abc import Mapping
from typing import assert_never

from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.fleet.questions import StatedSettings
from service.engine.inputs import EngineName
from service.engine.memory.plan import MemoryPlan

Flags = tuple[str, ...]
NAMED_METHODS = ("mtp", "ngram")  # drafts that need no other checkpoint
DTYPES: Mapping[str, str] = {"bf16": "bfloat16", "fp16": "float16"}


def engine_args(engine: EngineName, plan: MemoryPlan, stated: StatedSettings) -> Flags:
    """Return the flags, by each engine's own names, that reproduce the plan.

    Sources:
        vLLM 0.33 `engine/arg_utils.py`; SGLang `server_args.py`; `trtllm-serve --help` and its pull request 11487.
    """
    match engine:
        case "vllm":
            return _vllm(plan, stated)
        case "sglang":
            return _sglang(plan, stated)
        case "tensorrt-llm":
            return _tensorrt_llm(plan)
        case _ as never:
            assert_never(never)


def unnamed_settings(plan: MemoryPlan, stated: StatedSettings) -> Flags:
    """Return the settings that were sized and that `engine_args` cannot name, by their names in a question."""
    engine, settings = plan.rules.engine, plan.settings
    is_vllm, is_tensorrt_llm = engine == "vllm", engine == "tensorrt-llm"
    is_own_dtype = stated.kv_cache_dtype in (None, "auto", "fp8") or (
        engine == "sglang" and stated.kv_cache_dtype == "bf16"
    )
    unnamed = {
        "weight_format": loading_flags(plan) is None,
        "kv_cache_dtype": not is_vllm and not is_own_dtype and plan.checkpoint.kv_cache_dtype == "fp8",
        "kv_cache_memory_bytes": not is_vllm and settings.kv_cache_memory_bytes is not None,
        "block_size": is_tensorrt_llm and stated.block_size is not None,
        "max_loras": is_tensorrt_llm and settings.max_loras > 0,
        "data_parallel_size": is_tensorrt_llm and plan.layout.data_parallel_size > 1,
    }
    return tuple(name for name, is_unnamed in unnamed.items() if is_unnamed)


def names_drafter(plan: MemoryPlan) -> bool:
    """Return whether `engine_args` say who drafts."""
    return plan.rules.engine == "vllm" and plan.settings.speculative_method in NAMED_METHODS


def loading_flags(plan: MemoryPlan) -> Flags | None:
    """Return the flags that load the model's own checkpoint in the format sized; None where no flag does."""
    checkpoint, engine = plan.checkpoint, plan.rules.engine
    if checkpoint in plan.model.checkpoints:
        return ()
    own = own_checkpoint(plan.model).weight_format
    if own not in DTYPES or engine == "tensorrt-llm":
        return None
    if checkpoint.weight_format == "fp8":
        return ("--quantization", "fp8")  # the engine quantizes while it loads
    dtype = {"bf16": "bfloat16", "fp16": "half"}.get(checkpoint.weight_format)
    return None if dtype is None else ("--dtype", dtype)


def _vllm(plan: MemoryPlan, stated: StatedSettings) -> Flags:
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
    if stated.kv_cache_dtype is not None and stated.kv_cache_dtype in DTYPES:  # else the checkpoint's own has its way
        flags += ["--kv-cache-dtype", DTYPES[stated.kv_cache_dtype]]
    flags += [] if stated.block_size is None else ["--block-size", str(stated.block_size)]
    flags += _switches(stated)
    if settings.num_speculative_tokens and names_drafter(plan):
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
    return (*flags, *(loading_flags(plan) or ()))


def _switches(stated: StatedSettings) -> list[str]:
    """Return vLLM's flags for what was turned on or off."""
    flags = ["--enforce-eager"] if stated.enforce_eager else []
    if stated.enable_prefix_caching is not None:
        flags += ["--enable-prefix-caching" if stated.enable_prefix_caching else "--no-enable-prefix-caching"]
    return flags + (["--language-model-only"] if stated.language_model_only else [])


def _sglang(plan: MemoryPlan, stated: StatedSettings) -> Flags:
    layout, settings = plan.layout, plan.settings
    # Copies of the attention alone share the experts: there SGLang counts them within its tensor-parallel size.
    shares_experts = layout.data_parallel_size > 1 and plan.model.architecture.has_experts
    ranks = layout.tensor_parallel_size * (layout.data_parallel_size if shares_experts else 1)
    flags = ["--tp-size", str(ranks)]
    flags += _unless_one("--pp-size", layout.pipeline_parallel_size)
    flags += _unless_one("--dp-size", layout.data_parallel_size)
    flags += ["--enable-dp-attention"] if shares_experts else []
    flags += ["--ep-size", str(ranks)] if layout.expert_parallel else []
    flags += ["--context-length", str(settings.max_model_len)]
    flags += ["--mem-fraction-static", str(settings.gpu_memory_utilization)]
    flags += ["--max-running-requests", str(settings.max_num_seqs)]
    flags += ["--chunked-prefill-size", str(settings.max_num_batched_tokens)]
    flags += ["--kv-cache-dtype", "fp8_e4m3"] if settings.kv_cache_dtype == "fp8" else []
    flags += ["--kv-cache-dtype", "bf16"] if stated.kv_cache_dtype == "bf16" else []
    flags += [] if stated.block_size is None else ["--page-size", str(stated.block_size)]
    flags += ["--disable-radix-cache"] if stated.enable_prefix_caching is False else []
    if stated.swa_full_tokens_ratio is not None:
        flags += ["--swa-full-tokens-ratio", str(stated.swa_full_tokens_ratio)]
    if settings.max_loras:
        loras, rank = settings.max_loras, settings.max_lora_rank
        flags += ["--enable-lora", "--max-loras-per-batch", str(loras), "--max-lora-rank", str(rank)]
    return (*flags, *(loading_flags(plan) or ()))


def _tensorrt_llm(plan: MemoryPlan) -> Flags:
    layout, settings = plan.layout, plan.settings
    flags = ["--tp_size", str(layout.tensor_parallel_size)]
    flags += _unless_one("--pp_size", layout.pipeline_parallel_size)
    flags += ["--ep_size", str(layout.tensor_parallel_size)] if layout.expert_parallel else []
    flags += ["--max_seq_len", str(settings.max_model_len)]
    flags += ["--kv_cache_free_gpu_memory_fraction", str(settings.gpu_memory_utilization)]
    flags += ["--max_batch_size", str(settings.max_num_seqs)]
    flags += ["--max_num_tokens", str(settings.max_num_batched_tokens)]
    flags += ["--kv_cache_dtype", "fp8"] if settings.kv_cache_dtype == "fp8" else []
    return tuple(flags)


def _unless_one(flag: str, size: int) -> list[str]:
    return [] if size == 1 else [flag, str(size)]
