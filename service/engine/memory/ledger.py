"""The ledger of one GPU: everything that is not the cache, and what is left for it.

Constants are fitted on published start-up logs; `service/catalog/data/engine_rules.yaml` states the
source, sample and error of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from service.engine.derived import derived
from service.engine.engines.base import Spent
from service.engine.engines.device import device_of
from service.engine.engines.measured_here import MeasuredMemory
from service.engine.engines.rules import EngineRules, has_unified_memory
from service.engine.inputs import EngineSettings, Gpu, Layout
from service.engine.layers import Architecture, Mixer
from service.engine.memory.activation import Working, working_of
from service.engine.memory.captured import LARGEST_GRAPH_BATCH, Captures, captures_of
from service.engine.memory.images import kept_for_images
from service.engine.memory.results import MemoryPerGpu
from service.engine.memory.share import part_of_share, with_own_share

# The engine captures graphs for batches up to twice the sequences, at most this many.
FUSED_GENERATIONS = (9, 10)  # on which all-reduce is fused with norms


def memory_per_gpu(
    *,
    architecture: Architecture,
    rank_weight_bytes: int,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
    measured: MeasuredMemory | None = None,
) -> MemoryPerGpu:
    """Return the ledger; its terms add up to the byte. [bytes].

        total = reserved + weights + activation + graphs + non-torch + cache - shortfall

    With `kv_cache_memory_bytes` the cache is given, and `reserved` is what remains; each engine's
    `cache_bytes` states its own formula otherwise.

    vLLM 0.19 said of Gemma 2 9B on an H100 with 79.19 GiB, of which it may use 0.95, "torch peak memory increase:
    3.65GiB; non-torch forward increase memory: 0.25GiB; weights memory: 17.22GiB" and left 54.12 GiB for the cache
    (jgchn/llm-d-planner on GitHub, the same log as of `cuda_graph_bytes`):

    >>> from service.catalog.engine_rules import rules_for
    >>> from service.catalog.keeper import seeded_snapshot
    >>> catalog = seeded_snapshot()
    >>> gemma = catalog.model("gemma-2-9b").architecture
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.95, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=8_192,
    ...     max_num_seqs=1_024)
    >>> h100 = catalog.gpu("h100")
    >>> ledger = memory_per_gpu(
    ...     architecture=gemma, rank_weight_bytes=int(17.22 * 2**30), gpu=h100, layout=Layout(), settings=settings,
    ...     rules=rules_for("vllm", "0.19"))
    >>> terms = ledger.activation_bytes, ledger.non_torch_bytes, ledger.kv_cache_bytes
    >>> [round(term / 2**30, 1) for term in terms]
    [3.6, 0.2, 54.1]

    Args:
        architecture: the model.
        rank_weight_bytes: weights of the fullest rank. [bytes]
        gpu: memory as the driver reports it.
        layout: how one replica is spread.
        settings: utilization, batch limits and the like.
        rules: the engine version's defaults and measured terms.
        measured: what a start-up of this model, GPU and layout was seen to take, where somebody stored it.
    """
    part = part_of_share(architecture, gpu, layout, settings, rules)
    ledger = ledger_for(architecture, rank_weight_bytes, gpu, layout, settings, rules, part, measured)
    return ledger.memory(settings.max_num_batched_tokens, settings.max_num_seqs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ledger:
    """The ledger of one GPU under any batch: what does not depend on that was looked up once.

    A batch is of so many `tokens`, of at most so many `seqs`: `max_num_batched_tokens` and `max_num_seqs`.
    """

    rules: EngineRules  # that speak for the model
    working: Working
    total_bytes: int
    weight_bytes: int
    captures: Captures
    graph_bytes: float  # for each token of the largest captured batch
    non_torch_bytes: int
    given_bytes: int | None  # of the cache; None: it is what is left
    share: Callable[[int, int], float]  # of the memory, by tokens and sequences [fraction]
    images_bytes: Callable[[int], int]  # kept beside the cache, by sequences
    measured: MeasuredMemory | None

    def cache_bytes(self, tokens: int, seqs: int) -> int:
        """Return what is left for the cache; 0 where nothing is. [bytes]."""
        _, cache = self._divided(tokens, seqs)
        return max(cache, 0)

    def memory(self, tokens: int, seqs: int) -> MemoryPerGpu:
        """Return the terms. [bytes]."""
        spent, cache = self._divided(tokens, seqs)
        kept = max(cache, 0)
        reserved = spent.left_bytes - kept
        shortfall = max(-reserved, -cache, 0)
        return MemoryPerGpu(
            total_bytes=spent.total_bytes,
            reserved_bytes=reserved + shortfall,
            weight_bytes=spent.weight_bytes,
            activation_bytes=spent.activation_bytes,
            cuda_graph_bytes=spent.graph_bytes,
            non_torch_bytes=spent.non_torch_bytes,
            kv_cache_bytes=kept,
            shortfall_bytes=shortfall,
        )

    def _divided(self, tokens: int, seqs: int) -> tuple[Spent, int]:
        """Return what is spent, and what the budget leaves for the cache; negative when nothing is left. [bytes]."""
        if self.given_bytes is not None:
            return self._spent(tokens, seqs), self.given_bytes
        share, counts_graphs = self.share(tokens, seqs), self.rules.graph_accounting == "inside"
        spent = self._spent(tokens, seqs)
        left = self.rules.serving_engine.cache_bytes(spent, share, counts_graphs=counts_graphs)
        return spent, left - self.images_bytes(seqs)

    def _spent(self, tokens: int, seqs: int) -> Spent:
        graph_bytes = int(self.captures.largest(tokens, seqs) * self.graph_bytes)
        spent = Spent(
            total_bytes=self.total_bytes,
            weight_bytes=self.weight_bytes + self.working.loaded_bytes(tokens),
            activation_bytes=self.working.peak_bytes(tokens, seqs),
            graph_bytes=graph_bytes,
            non_torch_bytes=self.non_torch_bytes,
        )
        return spent if self.measured is None else _as_measured(spent, self.measured)


def ledger_for(
    architecture: Architecture,
    rank_weight_bytes: int,
    gpu: Gpu,
    layout: Layout,
    settings: EngineSettings,
    rules: EngineRules,
    part: float,
    measured: MeasuredMemory | None,
) -> Ledger:
    """Return the ledger under any batch, as of `memory_per_gpu`; `part` is what is kept of the share."""
    own = rules_of_model(architecture, rules)
    copies = layout.data_parallel_size if architecture.has_experts else 1

    def share(tokens: int, seqs: int) -> float:
        if not settings.is_share_open:
            return part * settings.gpu_memory_utilization
        batch = replace(settings, max_num_batched_tokens=tokens, max_num_seqs=seqs)
        return part * with_own_share(architecture, gpu, layout, batch, rules).gpu_memory_utilization

    return Ledger(
        rules=own,
        working=working_of(architecture, layout, settings, own, device_of(gpu, own)),
        total_bytes=gpu.memory_bytes,
        weight_bytes=rank_weight_bytes,
        captures=captures_of(settings, device_of(gpu, own)),
        graph_bytes=graph_bytes_per_token(architecture, layout, settings, own, gpu),
        non_torch_bytes=non_torch_bytes(gpu, layout, own, is_compiled=not settings.enforce_eager),
        given_bytes=settings.kv_cache_memory_bytes,
        share=share,
        images_bytes=lambda seqs: kept_for_images(architecture, gpu, layout, rules, copies * seqs),
        measured=measured,
    )


def rules_of_model(architecture: Architecture, rules: EngineRules) -> EngineRules:
    """Return the version's rules for this model: some versions run experts and recurrent state differently."""
    return rules.for_mixtures if rules.for_mixtures is not None and architecture.is_mixture else rules


def _as_measured(spent: Spent, measured: MeasuredMemory) -> Spent:
    """Return the same with what a start-up measured in its place; what is less than nothing is taken off the peak."""
    activation = round(measured.activation_factor * spent.activation_bytes)
    non_torch = spent.non_torch_bytes + measured.non_torch_bytes + measured.unexplained_bytes
    return replace(
        spent,
        weight_bytes=max(spent.weight_bytes + measured.weight_bytes, 0),
        activation_bytes=max(activation + min(non_torch, 0), 0),
        graph_bytes=round(measured.graph_factor * spent.graph_bytes),
        non_torch_bytes=max(non_torch, 0),
    )


def non_torch_bytes(gpu: Gpu, layout: Layout, rules: EngineRules, *, is_compiled: bool = True) -> int:
    """Return what the driver, libraries and communication take outside the framework's allocator. [bytes].

        non-torch = context and libraries, by GPU generation
                    + buffers of NCCL and custom all-reduce, or of all-reduce fused with norms, when ranks have peers
                    + what the host takes, where it shares the memory

    Since 0.11.1 vLLM sets up communication before it looks at what is free, so that its buffers, and much of the
    context, lie beside the budget; what libraries allocate for it later still counts. All-reduce is fused by a pass of
    the compiler, which makes the buffers: with `--enforce-eager` there are none.

    Source:
        vLLM 0.33 `v1/worker/gpu_worker.py` (`init_device`), pull request 25359; `config/vllm.py`
        (`enable_allreduce_rms_fusion`), `compilation/passes/pass_manager.py` (`AllReduceFusionPass`). Of GPUs in PCIe
        slots: logs that `engine_rules.yaml` names.
    """
    host = rules.non_torch_bytes_unified if has_unified_memory(gpu) else 0
    device = device_of(gpu, rules)
    joins = device.plan.joins_copies and layout.data_parallel_size > 1  # of the attention, over all ranks
    has_peers = layout.tensor_parallel_size > 1 or layout.expert_parallel or joins
    known = rules.context_bytes
    context = known.get(device.dotted, known.get(str(device.generation), known["other"]))
    if rules.connected_context_bytes is not None and (has_peers or layout.pipeline_parallel_size > 1):
        context = rules.connected_context_bytes
    if not has_peers:
        return context + host
    fuses = device.generation in FUSED_GENERATIONS and device.is_vllm_on_cuda and is_compiled
    alone = layout.pipeline_parallel_size == 1 and layout.data_parallel_size == 1
    if rules.fused_reduce_bytes and fuses and alone and layout.tensor_parallel_size > 1:
        return context + host + rules.fused_reduce_bytes
    # Without NVLink NCCL opens few channels, and copies through buffers of the host.
    buffers, meets_in_slots = rules.non_torch_bytes_with_slot_peers, gpu.scale_up_domain_gpus == 1 and not host
    if buffers is None or not meets_in_slots or gpu.vendor != "nvidia":
        buffers = rules.non_torch_bytes_with_peers
    return context + host + buffers


def graph_bytes_per_token(
    architecture: Architecture, layout: Layout, settings: EngineSettings, rules: EngineRules, gpu: Gpu
) -> float:
    """Return the memory of captured graphs, or the engine's estimate where that counts, by the largest batch.

        graphs = largest captured batch x (base / 512 + sum over layers of what their kind takes)

    Of a pipeline stage's layers. [bytes per token].

    vLLM 0.19 said of Gemma 2 9B on an H100 "Graph capturing finished, took 1.09 GiB" (jgchn/llm-d-planner on GitHub,
    accuracy/results/v0.19.0/logs/google-gemma-2-9b-it--h100-80gb--tp1pp1dp1--8192.log):

    >>> from service.catalog.engine_rules import rules_for
    >>> from service.catalog.keeper import seeded_snapshot
    >>> catalog = seeded_snapshot()
    >>> gemma = catalog.model("gemma-2-9b").architecture
    >>> settings = EngineSettings(
    ...     gpu_memory_utilization=0.95, kv_cache_dtype="bf16", max_model_len=8_192, max_num_batched_tokens=8_192,
    ...     max_num_seqs=1_024)
    >>> h100 = catalog.gpu("h100")
    >>> of_each = graph_bytes_per_token(gemma, Layout(), settings, rules_for("vllm", "0.19"), h100)
    >>> round(512 * of_each / 2**30, 2)
    1.09

    Source:
        vLLM 0.33 `config/vllm.py` (`_set_cudagraph_sizes`), `v1/worker/gpu/cudagraph_utils.py`
        (`profile_cudagraph_memory`).
    """
    if settings.enforce_eager:
        return 0.0
    terms = rules.graphs_on_hopper if device_of(gpu, rules).generation == 9 else rules.graphs_elsewhere
    kinds = layers_by_kind(architecture)
    of_layers = (
        kinds.dense * terms.per_dense_layer_and_size
        + kinds.experts * terms.per_expert_layer_and_size
        + kinds.recurrent * terms.per_recurrent_layer_and_size
        + kinds.selecting * terms.per_selecting_layer_and_size
    )
    return terms.base_bytes / LARGEST_GRAPH_BATCH + of_layers / layout.pipeline_parallel_size


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerKinds:
    """Layers by what a captured graph holds of them: each is dense, recurrent or of experts, and may select."""

    dense: int
    recurrent: int  # and without experts
    experts: int
    selecting: int  # tokens to attend to


@derived(1)
def layers_by_kind(architecture: Architecture) -> LayerKinds:
    """Return how many layers there are of each kind."""
    experts = architecture.num_expert_layers
    recurrent = sum(
        not layer.mlp.has_experts and any(mixer.is_recurrent for mixer in layer.mixers) for layer in architecture.layers
    )
    selecting = sum(any(_selects(mixer) for mixer in layer.mixers) for layer in architecture.layers)
    dense = len(architecture.layers) - experts - recurrent
    return LayerKinds(dense=dense, recurrent=recurrent, experts=experts, selecting=selecting)


def _selects(mixer: Mixer) -> bool:
    """Return whether a layer's kernel attends to selected or compressed tokens."""
    return any(need.kind == "sparse" or need.reads_fp8_only for need in mixer.kernel_needs)
