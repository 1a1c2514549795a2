"""vLLM's command line.

Sources:
    vLLM 0.33 `engine/arg_utils.py`, `config/compilation.py`, `config/scheduler.py`; docs, data parallel deployment.
"""

import shlex
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.engines.flags.base import HEAD, RENDEZVOUS_PORT, Args, CommandLine, Start, by_node, unless_one
from service.engine.inputs import SCALED_CACHES, EngineSettings, KvCacheDtype, SpeculativeMethod, WeightFormat

NEW_WITH: Final = "--nnodes"  # it starts its own workers on several nodes since 0.11.1; Ray did before
# The checkpoint's own fp8 by its full name: sparse kernels of Hopper take the short one for their packed cache.
PLAIN_FP8: Final = "fp8_e4m3"
WITHOUT_DEEP_GEMM: Final = "VLLM_USE_DEEP_GEMM=0"


class VllmCommand(CommandLine):
    """`vllm serve`."""

    program: Args = ("vllm", "serve")
    fills_servers_in_turn = True  # by Ray
    cache_dtypes: Mapping[KvCacheDtype, str] = MappingProxyType(
        {"fp8": "fp8", "bf16": "bfloat16", "fp16": "float16", **{dtype: dtype for dtype in SCALED_CACHES}}
    )
    made_formats: Mapping[WeightFormat, Args] = MappingProxyType(
        {"fp8": ("--quantization", "fp8"), "bf16": ("--dtype", "bfloat16"), "fp16": ("--dtype", "half")}
    )
    half: Args = ("--dtype", "half")
    own_code: Args = ("--trust-remote-code",)
    deprecated: Args = ("--allow-deprecated-quantization",)
    own_format: Args = ("--tokenizer-mode", "mistral", "--config-format", "mistral", "--load-format", "mistral")
    without_flag: frozenset[str] = frozenset()
    named_drafters: frozenset[SpeculativeMethod] = frozenset({"mtp", "ngram"})
    decisive: Mapping[str, str] = MappingProxyType({  # vLLM 0.8.0 `engine/arg_utils.py`
        "--speculative-config": "--speculative-model and --num-speculative-tokens name the drafter there",
        "--kv-cache-memory-bytes": "gpu_memory_utilization sizes the pool there",
    })  # fmt: skip

    def environment(self, start: Start) -> Args:
        """Return what keeps a version from kernels that its build has not: `envs.py`."""
        return (WITHOUT_DEEP_GEMM,) if start.avoids_deep_gemm else ()

    def sized(self, start: Start) -> Args:
        """Return layout, context, pool, batch, switches, drafter and adapters."""
        settings = start.settings
        return (
            *_layout(start),
            *("--max-model-len", str(settings.max_model_len)),
            *_pool(settings),
            *("--max-num-seqs", str(settings.max_num_seqs)),
            *("--max-num-batched-tokens", str(settings.max_num_batched_tokens)),
            *_cut_prompts(start),
            *self._cache(start),
            *_switches(start),
            *self._drafter(start),
            *_adapters(settings),
        )

    def over_nodes(self, start: Start, words: Args, flags: frozenset[str]) -> str:
        """Return copies of the attention spread over nodes, or one engine across them.

        Ray deals out stages that servers do not share evenly: `--nnodes` takes as many ranks of each.

        Source: vLLM docs, parallelism and scaling ("Multi-node vLLM deployments can use Ray as the runtime engine").
        """
        nodes, together = start.num_nodes, _copies_together(start)
        if together:
            return _copies_by_node(words, start.layout.data_parallel_size, together)
        if (flags and NEW_WITH not in flags) or super().spreads_unevenly(start) is not None:
            started = f"# on node 0: ray start --head; on the others: ray start --address={HEAD}:6379; then on node 0\n"
            return started + shlex.join((*words, "--distributed-executor-backend", "ray"))
        joined = (*words, "--nnodes", str(nodes), "--master-addr", HEAD, "--master-port", str(RENDEZVOUS_PORT))
        others = [(*joined, "--node-rank", str(node), "--headless") for node in range(1, nodes)]
        return by_node([(*joined, "--node-rank", "0"), *others])

    def spreads_unevenly(self, start: Start) -> str | None:
        """Return the same where stages would be cut; copies of the attention are started server by server.

        Source: vLLM 0.33 `engine/arg_utils.py` ("must evenly divide the total world size").
        """
        layout = start.layout
        has_whole_stages = layout.data_parallel_size == 1 and start.gpus_per_node % layout.tensor_parallel_size == 0
        return None if has_whole_stages or _copies_together(start) else super().spreads_unevenly(start)

    def most_sequences(self, batched_tokens: int, state_blocks: int | None) -> int | None:
        """Return as many as a step has tokens, and as there are blocks for their states.

        Each decoding request takes one block with a layer's state in it.

        Source:
            vLLM 0.33 `config/compilation.py` ("exceeds available Mamba cache blocks"), `config/scheduler.py`
            (`max_num_batched_tokens` is at least `max_num_seqs`).
        """
        return batched_tokens if state_blocks is None else min(batched_tokens, max(state_blocks, 1))

    def _cache(self, start: Start) -> Iterator[str]:
        """Yield the cache's dtype and block where they were asked for."""
        dtype = start.asked_cache_dtype
        if dtype is not None and dtype in self.cache_dtypes:
            yield from ("--kv-cache-dtype", PLAIN_FP8 if start.reads_own_fp8_plain else self.cache_dtypes[dtype])
        if start.stated.block_size is not None:
            yield from ("--block-size", str(start.stated.block_size))

    def _drafter(self, start: Start) -> Args:
        settings = start.settings
        if not settings.num_speculative_tokens or not self.names_drafter(settings):
            return ()
        method, drafted = start.drafter or settings.speculative_method, settings.num_speculative_tokens
        return ("--speculative-config", f'{{"method": "{method}", "num_speculative_tokens": {drafted}}}')


def _layout(start: Start) -> Args:
    layout = start.layout
    return (
        *("--tensor-parallel-size", str(layout.tensor_parallel_size)),
        *unless_one("--pipeline-parallel-size", layout.pipeline_parallel_size),
        *unless_one("--data-parallel-size", layout.data_parallel_size),
        *unless_one("--decode-context-parallel-size", layout.decode_context_parallel_size),
        *(("--enable-expert-parallel",) if layout.expert_parallel else ()),
    )


def _pool(settings: EngineSettings) -> Args:
    """Return the pool as it was given, or the share of the memory that it is sized by."""
    if settings.kv_cache_memory_bytes is None:
        return ("--gpu-memory-utilization", str(settings.gpu_memory_utilization))
    return ("--kv-cache-memory-bytes", str(settings.kv_cache_memory_bytes))


def _cut_prompts(start: Start) -> Args:
    """Return the flag without which versions refuse steps of less than the longest prompt.

    Source: vLLM 0.6 and 0.7 `config.py` ("This effectively limits the maximum sequence length").
    """
    is_cut = start.settings.max_num_batched_tokens < start.settings.max_model_len
    return ("--enable-chunked-prefill",) if is_cut and not start.cuts_prompts else ()


def _switches(start: Start) -> Iterator[str]:
    """Yield the flags for what was turned on or off."""
    stated = start.stated
    if stated.enforce_eager:
        yield "--enforce-eager"
    if stated.enable_prefix_caching is not None:
        yield "--enable-prefix-caching" if stated.enable_prefix_caching else "--no-enable-prefix-caching"
    if stated.language_model_only:
        yield "--language-model-only"
    if stated.mamba_cache_dtype != "auto":
        yield from ("--mamba-cache-dtype", stated.mamba_cache_dtype)
    if stated.mamba_ssm_cache_dtype != "auto":
        yield from ("--mamba-ssm-cache-dtype", stated.mamba_ssm_cache_dtype)
    if stated.async_scheduling is not None:
        yield "--async-scheduling" if stated.async_scheduling else "--no-async-scheduling"


def _adapters(settings: EngineSettings) -> Args:
    if not settings.max_loras:
        return ()
    return ("--enable-lora", "--max-loras", str(settings.max_loras), "--max-lora-rank", str(settings.max_lora_rank))


def _copies_together(start: Start) -> int:
    """Return the copies of the attention that a server runs; 0 where there is one copy, or none fits in a server."""
    layout = start.layout
    together = start.gpus_per_node * layout.data_parallel_size // layout.gpus_per_replica
    if layout.data_parallel_size == 1 or not together:
        return 0
    return ceil_div(layout.data_parallel_size, ceil_div(layout.data_parallel_size, together))


def _copies_by_node(words: Args, copies: int, together: int) -> str:
    """Return the commands of nodes that each run so many copies of the attention, the last one what is left."""
    joined = ("--data-parallel-address", HEAD, "--data-parallel-rpc-port", str(RENDEZVOUS_PORT))
    commands: list[Args] = []
    for first in range(0, copies, together):
        local = ("--data-parallel-size-local", str(min(together, copies - first)))
        behind = ("--headless", "--data-parallel-start-rank", str(first)) if first else ()
        commands.append((*words, *local, *joined, *behind))
    return by_node(commands)
