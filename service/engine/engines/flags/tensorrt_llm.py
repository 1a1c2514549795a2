"""TensorRT-LLM's command line.

Sources:
    `trtllm-serve --help`, and pull request 11487. Prompts longer than a step's tokens are refused without
    `--enable_chunked_prefill`, which is off unless asked for: `llmapi/llm.py` (`_check_arguments`), pull request 6259.
    Ranks over servers: "mpirun" of Open MPI 5, `-H host:slots`. A checkpoint's own fp8 cache needs no flag:
    docs/source/features/quantization.md ("even for checkpoints that do not have it enabled by default").
"""

import shlex
from collections.abc import Mapping
from types import MappingProxyType

from service.engine.engines.flags.base import HEAD, NODE, Args, CommandLine, Start, unless_one
from service.engine.inputs import KvCacheDtype, SpeculativeMethod, WeightFormat


class TensorRtLlmCommand(CommandLine):
    """`trtllm-serve`."""

    program: Args = ("trtllm-serve",)
    fills_servers_in_turn = True  # by MPI
    cache_dtypes: Mapping[KvCacheDtype, str] = MappingProxyType({"fp8": "fp8"})
    made_formats: Mapping[WeightFormat, Args] = MappingProxyType({})
    half: Args = ()
    own_code: Args = ("--trust_remote_code",)
    without_flag: frozenset[str] = frozenset({
        "kv_cache_memory_bytes", "block_size", "max_loras", "data_parallel_size",
    })  # fmt: skip
    named_drafters: frozenset[SpeculativeMethod] = frozenset()

    def sized(self, start: Start) -> Args:
        """Return layout, context, pool, batch and the cache's dtype."""
        layout, settings = start.layout, start.settings
        dtype = None if start.has_fp8_cache and settings.kv_cache_dtype == "fp8" else start.asked_cache_dtype
        return (
            *("--tp_size", str(layout.tensor_parallel_size)),
            *unless_one("--pp_size", layout.pipeline_parallel_size),
            *(("--ep_size", str(layout.tensor_parallel_size)) if layout.expert_parallel else ()),
            *("--max_seq_len", str(settings.max_model_len)),
            *("--kv_cache_free_gpu_memory_fraction", str(settings.gpu_memory_utilization)),
            *("--max_batch_size", str(settings.max_num_seqs)),
            *("--max_num_tokens", str(settings.max_num_batched_tokens)),
            "--enable_chunked_prefill",
            *(
                ("--kv_cache_dtype", self.cache_dtypes[dtype])
                if dtype is not None and dtype in self.cache_dtypes
                else ()
            ),
        )

    @property
    def decisive(self) -> Mapping[str, str]:
        """Return the cache's dtype, which a file of `--config` names before 1.3."""
        return {"--kv_cache_dtype": "kv_cache_config.dtype in a file of --config names it"}

    @property
    def copies_in_file(self) -> str:
        """Return what a file of `--config` says for copies of the attention."""
        return "enable_attention_dp, on tensor_parallel_size ranks"

    def spreads_unevenly(self, start: Start) -> str | None:  # noqa: ARG002 - MPI deals out ranks as it is told
        """Return nothing: MPI fills one server after the other."""
        return None

    def over_nodes(self, start: Start, words: Args, flags: frozenset[str]) -> str:  # noqa: ARG002 - of every version
        """Return one command, which MPI runs on every node."""
        ranks, most = start.layout.gpus_per_replica, start.gpus_per_node
        names = (HEAD, *(NODE.format(node) for node in range(1, start.num_nodes)))
        slots = (f"{name}:{min(most, ranks - most * node)}" for node, name in enumerate(names))
        by_mpi = ("mpirun", "-n", str(ranks), "-H", ",".join(slots), "trtllm-llmapi-launch")
        placed = ("--gpus_per_node", str(start.gpus_per_node))
        return f"# over {start.num_nodes} nodes, by MPI from the first\n{shlex.join((*by_mpi, *words, *placed))}"

    def most_sequences(self, batched_tokens: int, state_blocks: int | None) -> int | None:  # noqa: ARG002 - any
        """Return no limit: none is known."""
        return None
