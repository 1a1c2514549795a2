"""The ledger of one GPU: everything that is not the cache, and what is left for it.

Constants are fitted on published start-up logs; `service/catalog/data/engine_rules.yaml` states the
source, sample and error of each.
"""

from functools import lru_cache

from service.engine.architecture import (
    Architecture,
    DenseMlp,
    GroupedQueryAttention,
    LatentAttention,
    MoeMlp,
)
from service.engine.arithmetic import ceil_div
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.results import MemoryPerGpu
from service.engine.rules import EngineRules

ELEMENT_BYTES = 2  # activations are bf16 or fp16
# The engine captures graphs for batches up to twice the sequences, at most this many.
LARGEST_GRAPH_BATCH = 512


def memory_per_gpu(
    *,
    architecture: Architecture,
    rank_weight_bytes: int,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
) -> MemoryPerGpu:
    """Return the ledger; its terms add up to the byte.

        budget = floor(utilization x total)
        cache  = budget - weights - activation - graphs (when inside) - non-torch
        total  = reserved + weights + activation + graphs + non-torch + cache - shortfall

    With `kv_cache_memory_bytes` the cache is given, and `reserved` is what remains.

    Args:
        architecture: the model.
        rank_weight_bytes: weights of the fullest rank. [bytes]
        gpu: memory as the driver reports it.
        layout: how one replica is spread.
        settings: utilization, batch limits and the like.
        rules: the engine version's defaults and measured terms.

    Sources:
        vLLM 0.33 `v1/worker/gpu_worker.py` (`determine_available_memory`); SGLang
        `mem_fraction_static`; TensorRT-LLM `free_gpu_memory_fraction`.
    """
    activation = activation_bytes(architecture, layout, settings, rules)
    graphs = cuda_graph_bytes(architecture, settings, rules)
    non_torch = rules.non_torch_base_bytes
    if layout.tensor_parallel_size > 1 or layout.expert_parallel:
        non_torch += rules.non_torch_bytes_with_peers
    fixed = rank_weight_bytes + activation + graphs + non_torch
    if settings.kv_cache_memory_bytes is None:
        cache = _derived_cache_bytes(gpu, settings, rules, rank_weight_bytes, activation, graphs, non_torch)
    else:
        cache = settings.kv_cache_memory_bytes
    kept = max(cache, 0)
    reserved = gpu.memory_bytes - fixed - kept
    shortfall = max(-reserved, -cache, 0)
    return MemoryPerGpu(
        total_bytes=gpu.memory_bytes,
        reserved_bytes=reserved + shortfall,
        weight_bytes=rank_weight_bytes,
        activation_bytes=activation,
        cuda_graph_bytes=graphs,
        non_torch_bytes=non_torch,
        kv_cache_bytes=kept,
        shortfall_bytes=shortfall,
    )


def _derived_cache_bytes(
    gpu: Gpu,
    settings: EngineSettings,
    rules: EngineRules,
    weights: int,
    activation: int,
    graphs: int,
    non_torch: int,
) -> int:
    """Return what the engine's budget leaves for the cache; negative when nothing is left."""
    share = settings.gpu_memory_utilization
    match rules.memory_share:
        case "total":
            inside = graphs if rules.graph_accounting == "inside" else 0
            left = int(share * gpu.memory_bytes) - weights - activation - non_torch - inside
        case "static":
            left = int(share * gpu.memory_bytes) - weights - non_torch
        case "free":
            free = gpu.memory_bytes - weights - activation - graphs - non_torch
            return int(share * free) if free > 0 else free
    # Graphs beside the budget still need room on the device.
    return min(left, gpu.memory_bytes - weights - activation - graphs - non_torch)


def activation_bytes(architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the peak of the profiling run beside weights.

        peak = max(sampler, forward) + copies x batch x hidden x 2
        sampler = bytes_per_logit x max_num_seqs x vocabulary
        forward = batch x 2 x (widest layer on one rank)

    The sampler works on the whole vocabulary on every rank, so it does not shrink with tensor
    parallelism, and it dominates for small models and many sequences.
    """
    batch = settings.max_num_batched_tokens
    sequences = min(settings.max_num_seqs, batch)
    sampler = int(rules.sampler_bytes_per_logit * sequences * architecture.vocab_size)
    forward = batch * ELEMENT_BYTES * widest_layer_elements(architecture, layout)
    alive = int(rules.hidden_state_copies * batch * architecture.hidden_size * ELEMENT_BYTES)
    return max(sampler, forward) + alive


@lru_cache(maxsize=2048)
def widest_layer_elements(architecture: Architecture, layout: Layout) -> int:
    """Return the elements per token that the widest layer needs at once on one rank. [elements].

    Feed-forward: gate, up and their product, and the residual beside them. Experts: each token
    once per chosen expert. Attention: query, key, value and output.
    """
    tp, hidden = layout.tensor_parallel_size, architecture.hidden_size
    widest = 0
    for mlp in {layer.mlp for layer in architecture.layers}:
        if isinstance(mlp, DenseMlp):
            widest = max(widest, 3 * ceil_div(mlp.intermediate_size, tp))
        elif isinstance(mlp, MoeMlp):
            inner = ceil_div(mlp.moe_intermediate_size, 1 if layout.expert_parallel else tp)
            chosen = mlp.num_experts_per_tok * (3 * inner + (mlp.latent_size or hidden))
            widest = max(widest, chosen + 3 * ceil_div(mlp.shared_expert_intermediate_size, tp))
    for mixer in {mixer for layer in architecture.layers for mixer in layer.mixers}:
        if isinstance(mixer, GroupedQueryAttention):
            widths = (2 * mixer.num_attention_heads + 2 * mixer.num_key_value_heads) * mixer.head_dim
            widest = max(widest, ceil_div(widths, tp))
        elif isinstance(mixer, LatentAttention):
            widths = mixer.num_attention_heads * 2 * (mixer.kv_lora_rank + mixer.qk_rope_head_dim)
            widest = max(widest, ceil_div(widths, tp))
    return widest + 2 * hidden


def cuda_graph_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the memory of captured graphs.

    graphs = base + captured sizes x (dense layers x a + expert layers x b)
    """
    if settings.enforce_eager:
        return 0
    sizes = min(2 * settings.max_num_seqs, LARGEST_GRAPH_BATCH, settings.max_num_batched_tokens)
    expert_layers = sum(isinstance(layer.mlp, MoeMlp) for layer in architecture.layers)
    dense_layers = len(architecture.layers) - expert_layers
    return rules.graph_base_bytes + int(
        sizes
        * (
            dense_layers * rules.graph_bytes_per_dense_layer_and_size
            + expert_layers * rules.graph_bytes_per_expert_layer_and_size
        )
    )
