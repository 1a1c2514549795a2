"""Two small models that were posed to vLLM 0.33's own planner in every way of storing weights: dense, and of experts."""

from typing import Any, Final

_SHARED: Final[dict[str, Any]] = {
    "hidden_size": 2_048,
    "num_hidden_layers": 2,
    "num_attention_heads": 32,
    "vocab_size": 32_000,
    "max_position_embeddings": 8_192,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "hidden_act": "silu",
    "attention_bias": False,
}
SMALL_DENSE: Final = _SHARED | {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "intermediate_size": 8_192,
    "num_key_value_heads": 8,
    "head_dim": 64,
}
SMALL_EXPERTS: Final = _SHARED | {
    "architectures": ["Qwen3MoeForCausalLM"],
    "model_type": "qwen3_moe",
    "intermediate_size": 6_144,
    "moe_intermediate_size": 768,
    "num_experts": 16,
    "num_experts_per_tok": 8,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
    "num_key_value_heads": 4,
    "head_dim": 128,
}
