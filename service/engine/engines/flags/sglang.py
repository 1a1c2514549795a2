"""SGLang's command line.

Source:
    SGLang `server_args.py`.
"""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from service.engine.engines.flags.base import HEAD, RENDEZVOUS_PORT, Args, CommandLine, Start, by_node, unless_one
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout, SpeculativeMethod, WeightFormat

# The tokens of a rank that it has room for: `environ.py`; a step that decodes has one of each request.
ROOM: Args = ("env", "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK={}")
OWN_ROOM = 128


class SglangCommand(CommandLine):
    """`python -m sglang.launch_server`."""

    program: Args = ("python", "-m", "sglang.launch_server", "--model-path")
    cache_dtypes: Mapping[KvCacheDtype, str] = MappingProxyType({"fp8": "fp8_e4m3", "bf16": "bf16"})
    made_formats: Mapping[WeightFormat, Args] = MappingProxyType(
        {"fp8": ("--quantization", "fp8"), "bf16": ("--dtype", "bfloat16"), "fp16": ("--dtype", "half")}
    )
    half: Args = ("--dtype", "half")
    own_code: Args = ("--trust-remote-code",)
    without_flag: frozenset[str] = frozenset({"kv_cache_memory_bytes"})
    named_drafters: frozenset[SpeculativeMethod] = frozenset({"mtp"})

    def sized(self, start: Start) -> Args:
        """Return layout, context, pool, batch, kernels of experts, switches and adapters.

        Requests and tokens of a step are counted over all copies of the attention that share experts.

        Source:
            SGLang `tp_worker.py` (`max_running_requests // dp_size`), `server_args.py` (`_handle_data_parallelism`:
            "The chunked prefill size is adjusted").
        """
        settings = start.settings
        copies = start.layout.data_parallel_size if _shares_experts(start) else 1
        return (
            *_layout(start),
            *("--context-length", str(settings.max_model_len)),
            *("--mem-fraction-static", str(settings.gpu_memory_utilization)),
            *("--max-running-requests", str(copies * settings.max_num_seqs)),
            *("--chunked-prefill-size", str(copies * settings.max_num_batched_tokens)),
            *(("--moe-runner-backend", start.expert_kernels) if start.expert_kernels else ()),
            *self._cache(start),
            *_drafts(settings),
            *_adapters(settings),
        )

    def environment(self, start: Start) -> Args:
        """Return room for the tokens that a rank sends to experts, where a step has more than there is room for."""
        tokens = start.settings.max_num_seqs * (1 + start.settings.num_speculative_tokens)
        if start.layout.all2all_backend is None or tokens <= OWN_ROOM:
            return ()
        return (*ROOM[:-1], ROOM[-1].format(tokens))

    def spreads_unevenly(self, start: Start) -> str | None:
        """Return the same, and that whole copies of a dense model stay on one server.

        Source: SGLang 0.5.23 `arg_groups/validation_hook.py` (`dp_size > 1 and nnodes != 1`; `(tp * pp) % nnodes`).
        """
        if start.layout.data_parallel_size > 1 and not start.has_experts:
            return "SGLang starts whole copies of a dense model on one server alone: ask for replicas of one copy"
        return super().spreads_unevenly(start)

    def over_nodes(self, start: Start, words: Args, flags: frozenset[str]) -> str:  # noqa: ARG002 - of every version
        """Return one command a node, which differ in its rank."""
        joined = (*words, "--nnodes", str(start.num_nodes), "--dist-init-addr", f"{HEAD}:{RENDEZVOUS_PORT}")
        return by_node([(*joined, "--node-rank", str(node)) for node in range(start.num_nodes)])

    def most_sequences(self, batched_tokens: int, state_blocks: int | None) -> int | None:  # noqa: ARG002 - any
        """Return no limit: it takes fewer where the pool is small."""
        return None

    def _cache(self, start: Start) -> Iterator[str]:
        """Yield what was asked of the cache: dtype, page, prefixes, and the share of sliding windows."""
        dtype, stated = start.asked_cache_dtype, start.stated
        if dtype is not None and dtype in self.cache_dtypes:
            yield from ("--kv-cache-dtype", self.cache_dtypes[dtype])
        if stated.block_size is not None:
            yield from ("--page-size", str(stated.block_size))
        if stated.enable_prefix_caching is False:
            yield "--disable-radix-cache"
        if stated.swa_full_tokens_ratio is not None:
            yield from ("--swa-full-tokens-ratio", str(stated.swa_full_tokens_ratio))
        if stated.mamba_ssm_cache_dtype != "auto":
            yield from ("--mamba-ssm-dtype", stated.mamba_ssm_cache_dtype)


def _shares_experts(start: Start) -> bool:
    return start.layout.data_parallel_size > 1 and start.has_experts


def _layout(start: Start) -> Args:
    """Return the layout's flags.

    Copies of the attention alone share the experts: there SGLang counts them within its tensor-parallel size.
    """
    layout = start.layout
    shares_experts = _shares_experts(start)
    ranks = layout.tensor_parallel_size * (layout.data_parallel_size if shares_experts else 1)
    return (
        *("--tp-size", str(ranks)),
        *unless_one("--pp-size", layout.pipeline_parallel_size),
        *unless_one("--dp-size", layout.data_parallel_size),
        *(("--enable-dp-attention",) if shares_experts else ()),
        *(("--ep-size", str(ranks)) if layout.expert_parallel else ()),
        *_exchange(layout),
    )


def _exchange(layout: Layout) -> Args:
    """Return the flags of DeepEP: ranks hold dense layers and the output head whole, and load is balanced."""
    if layout.all2all_backend is None:
        return ()
    balanced = ("--enable-eplb", "--ep-num-redundant-experts", str(layout.redundant_experts))
    overlap = ("--enable-two-batch-overlap",) if layout.enable_two_batch_overlap else ()
    whole = ("--moe-dense-tp-size", "1", "--enable-dp-lm-head")
    return ("--moe-a2a-backend", layout.all2all_backend, *whole, *balanced, *overlap)


def _drafts(settings: EngineSettings) -> Args:
    """Return the flags of the checkpoint's own drafts: a chain, whose last step is verified with those before it.

    Source: SGLang 0.5.23 `arg_groups/speculative_hook.py` ("NEXTN aliases EAGLE"; `draft_width = speculative_num_steps
    + 1` where a step keeps one token), before 0.5.19 `server_args.py`.
    """
    if not settings.num_speculative_tokens or settings.speculative_method != "mtp":
        return ()
    steps = settings.num_speculative_tokens
    chain = ("--speculative-num-steps", str(steps), "--speculative-eagle-topk", "1")
    return ("--speculative-algorithm", "EAGLE", *chain, "--speculative-num-draft-tokens", str(steps + 1))


def _adapters(settings: EngineSettings) -> Args:
    if not settings.max_loras:
        return ()
    loras, rank = str(settings.max_loras), str(settings.max_lora_rank)
    # Without adapters at the start it asks for ranks and modules: SGLang `arg_groups/lora_hook.py`.
    every = ("--lora-target-modules", "all")
    return ("--enable-lora", "--max-loras-per-batch", loras, "--max-lora-rank", rank, *every)
