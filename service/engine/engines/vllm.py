"""vLLM: one pool of equal pages, sized by a share of the whole memory.

Sources:
    vLLM 0.33 `v1/worker/gpu_worker.py` (`determine_available_memory`), `v1/worker/gpu/model_runner.py`
    (`profile_run`), `config/parallel.py` (`decode_context_parallel_size`); pull request 30515.
"""

from typing import Final

from packaging.version import Version

from service.engine.engines.base import Engine, Latents, MemoryShare, Spent, Switch, nearest_known
from service.engine.engines.flags.base import CommandLine
from service.engine.engines.flags.vllm import VllmCommand
from service.engine.engines.plans import PlanRules, plan_of
from service.engine.inputs import EngineName, LengthDistribution

# Versions that `plans.py` has rules of.
OLDEST_PLANNED: Final = "0.8"
NEWEST_PLANNED: Final = "0.33"


class Vllm(Engine):
    """vLLM profiles one forward pass, and gives the cache what its share of the memory leaves."""

    name: EngineName = "vllm"
    title = "vLLM"
    newest = NEWEST_PLANNED
    memory_share: MemoryShare = "total"
    has_pool_per_kind = False
    switches: frozenset[Switch] = frozenset({
        "quantization", "enforce_eager", "enable_prefix_caching", "language_model_only",
        "mamba_cache_dtype", "mamba_ssm_cache_dtype",
    })  # fmt: skip
    reserves_output = False
    reads_alone = False
    rescales_contexts = True
    spreads_caches = True
    # Source: vLLM 0.33 `benchmarks/datasets` (`RandomDataset.DEFAULT_RANGE_RATIO = 0.0`): each as long as stated.
    benchmark_lengths: LengthDistribution = "fixed"
    kernel_library = "vllm"
    unpacks_by_marlin = True
    # Its kernels for blocks were measured in Triton, 2-5 times slower than the DeepGEMM it runs; those for
    # scales per token do the same work.
    fp8_block_kernels = "fp8"
    # 44 ms a step of Mixtral 8x7B on two H200 with 16 requests of 2,250 tokens; blocks do the same work in 9 ms, and
    # bf16, of twice the bytes, takes 13 ms.
    # Source: aiconfigurator-core 0.12, systems/data/h200_sxm/moe/vllm/0.24.0/moe_perf.parquet.
    untuned_fp8_experts = frozenset({"hopper"})
    command_line: CommandLine = VllmCommand()

    def all2all_backend(self, release: str) -> str | None:
        """Return how ranks gather tokens: each from all, one after the other before 0.11.

        Source:
            vLLM 0.10 and 0.11 `envs.py` (`VLLM_ALL2ALL_BACKEND`), later `config/parallel.py` (`all2all_backend`).
        """
        is_early = release and Version(release) < Version("0.11")
        return "naive" if is_early else "allgather_reducescatter"

    def latent_kernels(self, latents: Latents, gpu_architecture: str) -> str | None:
        """Return 16 bits for latents of all tokens, and blocks for those that compress their past, on Hopper.

        A layer of latents was measured whole, with matrices in 16 bits and in blocks, and not with scales per token:
        rows of another engine would stand in, 16 times slower at 256 requests. Those in blocks are Triton's again, but
        for DeepSeek-V4, measured as its checkpoints are: a token of V4-Flash takes 9.5 ms on H200, by the data sheet
        half of it; two GH200 write 106 tokens a second without drafts. On Blackwell it was measured without graphs: one
        request takes longer than eight, 27 ms on B200, where 32 users of V4-Flash get a token every 20 ms.

        Sources:
            aiconfigurator-core 0.12, systems/data/h200_sxm/mla/vllm/0.24.0/mla_generation_module_perf.parquet,
            systems/data/h200_sxm and b200_sxm/sparse_attention/vllm/0.24.0.
            dnhkng.github.io, gh200-benchmarking-part-2 (June 2026).
            lambda.ai, inference-models/deepseek-ai/deepseek-v4-flash.
        """
        if latents == "whole":
            return "bfloat16"
        return "fp8_block" if gpu_architecture == "hopper" else None

    def cache_bytes(self, spent: Spent, share: float, *, counts_graphs: bool) -> int:
        """Return what the budget leaves for the cache. [bytes].

            floor(gpu_memory_utilization x total) - weights - activation - non-torch (- graphs)

        It subtracts its own estimate of the graphs since 0.20, and captured them beside the budget before: there
        they need room on the device all the same.

        vLLM's issue 10517, Llama 3.1 8B on an RTX 3090: "total_gpu_memory=23.58GiB ... peak_torch_memory=17.98GiB
        non_torch_memory=0.35GiB kv_cache_size=2.89GiB" under 0.9, weights (14.99) and graphs beside the peak:

        >>> spent = Spent(
        ...     total_bytes=int(23.58 * 2**30), weight_bytes=int(14.99 * 2**30), activation_bytes=int(2.99 * 2**30),
        ...     graph_bytes=0, non_torch_bytes=int(0.35 * 2**30))
        >>> round(Vllm().cache_bytes(spent, 0.9, counts_graphs=False) / 2**30, 2)
        2.89
        """
        taken = spent.weight_bytes + spent.activation_bytes + spent.non_torch_bytes
        inside = spent.graph_bytes if counts_graphs else 0
        return min(int(share * spent.total_bytes) - taken - inside, spent.left_bytes)

    def working_bytes(self, sampler: int, forward: int, encoder: int) -> int:
        """Return the largest of the buffers: each is freed before the next is filled. [bytes]."""
        return max(sampler, forward, encoder)

    def plan(self, version: Version) -> PlanRules:
        """Return how a version plans caches and weights."""
        return plan_of(version)

    def planned_as(self, version: Version) -> str | None:
        """Return the version whose rules stand in for a version without rules of its own."""
        known = nearest_known(version, OLDEST_PLANNED, NEWEST_PLANNED)
        return None if known is None else f"{self.title} {known}"
