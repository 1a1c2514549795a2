"""What examples of several questions show: a config to paste, and the memory of one GPU."""

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

MEMORY_PER_GPU = {
    "total_bytes": 85520809984,
    "reserved_bytes": 6841664799,
    "weight_bytes": 36329510528,
    "activation_bytes": 5260000000,
    "cuda_graph_bytes": 450000000,
    "non_torch_bytes": 1460288880,
    "kv_cache_bytes": 35179345777,
    "shortfall_bytes": 0,
}
