"""Published start-ups name fine-tunes and conversions; the catalog knows models of exactly their shape."""

# Shape, vocabulary and layers agree, so caches and activations do; their logged weights stand in for ours.
SAME_SHAPE = {
    "DeepSeek-R1-0528-Qwen3-8B": "qwen3-8b",
    "Devstral-Small-2-24B-AWQ": "devstral-small-2-24b-instruct-2512",
    "GLM-5.2": "glm-5.2",
    "Kimi-K2-Thinking": "kimi-k2-instruct",
    "Llama-3_3-Nemotron-Super-49B-v1_5": "llama-3.3-nemotron-super-49b-v1",
    "Meta-Llama-3.1-405B-Instruct-FP8": "llama-3.1-405b-instruct",
    "Meta-Llama-3-70B": "llama-3.1-70b-instruct",
    "Mistral-7B-Instruct-v0.2-GPTQ": "mistral-7b-instruct-v0.3",
    "Qwen2.5-Coder-0.5B-Instruct": "qwen2.5-0.5b",
    "Qwen2.5-Math-1.5B": "qwen2.5-1.5b",
    "Qwen3-14B": "qwen3-14b",
    "Qwen3-4B-Base": "qwen3-4b",
    "Qwen3-8B": "qwen3-8b",
    "Qwen3.8-27B-Unc": "qwen3.8-27b",
    "gemma-4-26B-AWQ": "gemma-4-26b-a4b-it",
    "gemma-4-31B-AWQ": "gemma-4-31b-it",
    "gemma-4-31B-it-AWQ-4bit": "gemma-4-31b-it",
    "llava-v1.6-mistral-7b-hf": "mistral-7b-v0.1",
    "meta-llama-3.1-8b-instruct-unsloth-bnb-4bit": "llama-3.1-8b-instruct",
    "qwen2.5-3b-instruct-unsloth-bnb-4bit": "qwen2.5-3b-instruct",
    "qwen2.5-vl-7b-instruct-unsloth-bnb-4bit": "qwen2.5-vl-7b-instruct",
}
