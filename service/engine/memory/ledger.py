"""The ledger of one GPU: everything that is not the cache, and what is left for it.

Constants are fitted on published start-up logs; `service/catalog/data/engine_rules.yaml` states the
source, sample and error of each.
"""

from service.engine.engines.base import Spent
from service.engine.engines.rules import EngineRules, has_unified_memory
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.layers import Architecture
from service.engine.memory.activation import activation_bytes
from service.engine.memory.results import MemoryPerGpu

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
    """Return the ledger; its terms add up to the byte. [bytes].

        total = reserved + weights + activation + graphs + non-torch + cache - shortfall

    With `kv_cache_memory_bytes` the cache is given, and `reserved` is what remains; each engine's
    `cache_bytes` states its own formula otherwise. Rules that also hold for an older version (nobody
    stated one) give the smaller of the two pools.

    Args:
        architecture: the model.
        rank_weight_bytes: weights of the fullest rank. [bytes]
        gpu: memory as the driver reports it.
        layout: how one replica is spread.
        settings: utilization, batch limits and the like.
        rules: the engine version's defaults and measured terms.
    """
    ledgers = [
        _ledger(architecture, rank_weight_bytes, gpu, layout, settings, rules_of_model(architecture, row))
        for row in (rules, rules.also_holds_for)
        if row is not None
    ]
    return min(ledgers, key=lambda it: it.kv_cache_bytes - it.shortfall_bytes)


def rules_of_model(architecture: Architecture, rules: EngineRules) -> EngineRules:
    """Return the version's rules for this model: some versions run experts and recurrent state differently."""
    return rules.for_mixtures if rules.for_mixtures is not None and architecture.is_mixture else rules


def _ledger(
    architecture: Architecture,
    rank_weight_bytes: int,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
) -> MemoryPerGpu:
    activation = activation_bytes(architecture, layout, settings, rules)
    graphs = cuda_graph_bytes(architecture, settings, rules)
    non_torch = non_torch_bytes(gpu, layout, rules)
    spent = Spent(
        total_bytes=gpu.memory_bytes,
        weight_bytes=rank_weight_bytes,
        activation_bytes=activation,
        graph_bytes=graphs,
        non_torch_bytes=non_torch,
    )
    cache = settings.kv_cache_memory_bytes
    if cache is None:
        counts_graphs = rules.graph_accounting == "inside"
        cache = rules.serving_engine.cache_bytes(spent, settings.gpu_memory_utilization, counts_graphs=counts_graphs)
    kept = max(cache, 0)
    reserved = spent.left_bytes - kept
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


def non_torch_bytes(gpu: Gpu, layout: Layout, rules: EngineRules) -> int:
    """Return what the driver, libraries and communication take outside the framework's allocator. [bytes].

        non-torch = context and libraries (+ buffers of NCCL and custom all-reduce, when ranks have peers)
                    (+ what the host takes, where it shares the memory)

    Since 0.11.1 vLLM sets up communication before it looks at what is free, so that its buffers lie
    beside the budget; what libraries allocate for it later still counts.

    Source:
        vLLM 0.33 `v1/worker/gpu_worker.py` (`init_device`), pull request 25359.
    """
    peers = rules.non_torch_bytes_with_peers if layout.tensor_parallel_size > 1 or layout.expert_parallel else 0
    host = rules.non_torch_bytes_unified if has_unified_memory(gpu) else 0
    return rules.non_torch_base_bytes + peers + host


def cuda_graph_bytes(architecture: Architecture, settings: EngineSettings, rules: EngineRules) -> int:
    """Return the memory of captured graphs, or the engine's estimate where that counts. [bytes].

        graphs = base + largest captured batch x (s + dense layers x a + expert layers x b)

    The largest captured batch is twice `max_num_seqs`, at most 512 and at most the token budget.

    Source:
        vLLM 0.33 `config/vllm.py` (`_set_cudagraph_sizes`), `v1/worker/gpu/cudagraph_utils.py`
        (`profile_cudagraph_memory`).
    """
    if settings.enforce_eager:
        return 0
    sizes = largest_captured_batch(settings)
    experts = architecture.num_expert_layers
    per_size = (
        rules.graph_bytes_per_size
        + (len(architecture.layers) - experts) * rules.graph_bytes_per_dense_layer_and_size
        + experts * rules.graph_bytes_per_expert_layer_and_size
    )
    return rules.graph_base_bytes + int(sizes * per_size)


def largest_captured_batch(settings: EngineSettings) -> int:
    """Return the tokens of the largest batch that is captured as a graph. [tokens]."""
    return min(2 * settings.max_num_seqs, LARGEST_GRAPH_BATCH, settings.max_num_batched_tokens)
