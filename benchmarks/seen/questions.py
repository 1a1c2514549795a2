"""What is asked: the questions of the list, as they were seen to fail."""

from typing import Any, Final
from urllib.parse import urlencode

LLAMA: Final[dict[str, Any]] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
TINY: Final = {
    **LLAMA,
    "num_hidden_layers": 1,
    "hidden_size": 64,
    "intermediate_size": 64,
    "num_attention_heads": 1,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "vocab_size": 100,
    "max_position_embeddings": 200_000_000,
}
NEMOTRON: Final = {
    **LLAMA,
    "architectures": ["NemotronHForCausalLM"],
    "mamba_num_heads": 128,
    "mamba_head_dim": 64,
    "ssm_state_size": 128,
    "n_groups": 8,
    "conv_kernel": 4,
    "hybrid_override_pattern": "M" * 10_000,
}
LOAD: Final[dict[str, Any]] = {"gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 200}
DEAR: Final = {
    "model": "qwen2.5-7b",
    "gpu": "h100",
    "request_rate_per_s": 1,
    "ttft_s": 1000,
    "input_tokens": 30_000,
    "output_tokens": 200,
    "max_num_batched_tokens": 1,
    "max_num_seqs": 1,
}
EVERYTHING: Final = {
    "model_config": {**LLAMA, "num_hidden_layers": 100},
    "request_rate_per_s": 20,
    "ttft_s": 1,
    "tpot_s": 0.03,
    "input_tokens": 1000,
    "output_tokens": 200,
    "weight_formats": ["bf16", "fp16", "fp8", "int8", "int4", "mxfp4", "nvfp4"],
    "kv_cache_dtypes": ["auto", "bf16", "fp16", "fp8"],
    "limit": 1000,
}
ORDINARY: Final = {
    "model": "llama-3.1-8b",
    "gpu": "h100",
    "concurrent_requests": 64,
    "input_tokens": 2000,
    "output_tokens": 500,
}
SOURCE: Final = {"url": "https://example.com/sheet", "checked_on": "2026-11-01"}
OFFER: Final = "aws-p5.48xlarge-us-east-1"


def pasted(config: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model_config": config, **LOAD, **more}


def quantized(**stated: Any) -> dict[str, Any]:
    """Return a question with a pasted fp8 config that states this of its quantization."""
    return pasted({**LLAMA, "quantization_config": {"quant_method": "fp8", **stated}})


def path(question: dict[str, Any], asked: str = "size") -> str:
    return f"/{asked}?{urlencode(question)}"


def distinct(number: int) -> dict[str, Any]:
    """Return an ordinary question that nobody asked before."""
    return {**ORDINARY, "concurrent_requests": 1 + number % 512, "input_tokens": 1_000 + number}


def gpu(**figures: float) -> dict[str, Any]:
    """Return a GPU of no real thing, with other figures."""
    held = {"memory_bytes": 107374182400, "memory_bandwidth_bytes_per_s": 3350000000000, **figures}
    return {
        "id": "made-up-100gb",
        "name": "Made Up 100GB",
        "vendor": "nvidia",
        "architecture": "hopper",
        "compute_capability": "9.0",
        "aliases": ["madeup"],
        "gpus_per_node": 8,
        "scale_up_domain_gpus": 8,
        "scale_up_kind": "nvlink",
        "figures": {name: {"value": value, "printed_as": str(value), "source": SOURCE} for name, value in held.items()},
    }


def offer(**changes: Any) -> dict[str, Any]:
    """Return an offer of no real thing."""
    return {
        "id": "made-up-offer",
        "provider": "aws",
        "instance_type": "p99.48xlarge",
        "region": "us-east-1",
        "gpu": "h100-sxm-80gb",
        "gpu_count": 8,
        "usd_per_hour": 10.0,
        "as_of": "2026-11-01",
        "source": SOURCE,
        **changes,
    }
