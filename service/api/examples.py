"""Examples in the contract: questions that can be pasted, and what an answer looks like."""

from typing import Any

from fastapi.openapi.models import Example

from service.engine.families import EXAMPLE_CLASS

LLAMA_CONFIG = {
    "architectures": [EXAMPLE_CLASS],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}

SIZE_QUESTIONS: dict[str, Example] = {
    "by name": {
        "summary": "64 requests of 6,000 tokens on H100",
        "value": {
            "model": "llama-3.3-70b",
            "gpu": "h100",
            "concurrent_requests": 64,
            "input_tokens": 5500,
            "output_tokens": 500,
            "weight_format": "fp8",
        },
    },
    "by rate": {
        "summary": "40 arrivals a second within limits, three tokens drafted a step",
        "value": {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "request_rate_per_s": 40,
            "input_tokens": 1000,
            "output_tokens": 200,
            "ttft_s": 0.5,
            "tpot_s": 0.04,
            "percentile": 95,
            "burstiness": 0.5,
            "length_distribution": "lognormal",
            "length_variation_fraction": 0.5,
            "speculative_method": "eagle3",
            "num_speculative_tokens": 3,
            "speculative_acceptance_fraction": 0.6,
        },
    },
    "with adapters": {
        "summary": "four LoRA adapters in one batch, one replica to spare",
        "value": {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "concurrent_requests": 64,
            "input_tokens": 1000,
            "output_tokens": 200,
            "max_loras": 4,
            "max_lora_rank": 32,
            "spare_replicas": 1,
        },
    },
    "in pools": {
        "summary": "prefill and decode on GPUs of their own",
        "value": {
            "model": "llama-3.1-8b",
            "gpu": "h100",
            "request_rate_per_s": 40,
            "input_tokens": 1000,
            "output_tokens": 200,
            "disaggregated": True,
        },
    },
    "with spread caches": {
        "summary": "the tokens of one latent cache spread over eight ranks",
        "value": {
            "model": "deepseek-v3",
            "gpu": "h200",
            "concurrent_requests": 64,
            "input_tokens": 5500,
            "output_tokens": 500,
            "tensor_parallel_size": 8,
            "decode_context_parallel_size": 8,
        },
    },
    "by config": {
        "summary": "a model that is not in the catalog",
        "value": {
            "model_config": LLAMA_CONFIG,
            "gpu": "l40s",
            "concurrent_requests": 8,
            "input_tokens": 2000,
            "output_tokens": 500,
        },
    },
}
CAPACITY_QUESTIONS: dict[str, Example] = {
    "by name": {
        "summary": "Qwen2.5 7B on one H100",
        "value": {"model": "qwen2.5-7b-instruct", "gpu": "h100", "gpu_count": 1},
    },
}
RECOMMEND_QUESTIONS: dict[str, Example] = {
    "by name": {
        "summary": "the cheapest way to serve 32 requests at once",
        "value": {"model": "qwen3-32b", "concurrent_requests": 32, "input_tokens": 2000, "output_tokens": 500},
    },
}

_MEMORY = {
    "total_bytes": 85520809984,
    "reserved_bytes": 6841664799,
    "weight_bytes": 36329510528,
    "activation_bytes": 5260000000,
    "cuda_graph_bytes": 450000000,
    "non_torch_bytes": 1460288880,
    "kv_cache_bytes": 35179345777,
    "shortfall_bytes": 0,
}
_ANSWERS: dict[str, dict[str, Any]] = {
    "size": {"feasible": True, "gpus": 2, "replicas": 1, "gpus_per_replica": 2, "memory_per_gpu": _MEMORY},
    "capacity": {"feasible": True, "max_concurrent_requests": 30, "gpus": 1, "memory_per_gpu": _MEMORY},
    "recommend": {
        "feasible": True,
        "model": "qwen3-32b",
        "options": [{"rank": 1, "gpu": "h100-sxm-80gb", "gpus": 1, "usd_per_hour": 2.99}],
    },
}


def answer_content(name: str) -> dict[str, Any]:
    """Return the 200 entry of a question: an abridged example, and the formats it may come in."""
    return {
        "description": "The answer. With `field` or another `format`, the same as text, CSV, YAML or gauges.",
        "content": {
            "application/json": {"examples": {"abridged": {"summary": "abridged", "value": _ANSWERS[name]}}},
            "text/plain": {"schema": {"type": "string"}, "example": "2\n"},
            "text/csv": {"schema": {"type": "string"}, "example": "feasible,gpus\nTrue,2\n"},
            "application/yaml": {"schema": {"type": "string"}, "example": "feasible: true\ngpus: 2\n"},
        },
    }
