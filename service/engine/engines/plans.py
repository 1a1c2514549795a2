"""How one version of an engine plans memory, where versions differ: each row says what was otherwise before it.

A version's values are the newest ones, with every change undone that it does not have yet. Rows may be written in any
order; one that would not be used as it stands is refused by its name, when the service starts.

Sources:
    vLLM 0.8 to 0.33, the same files over versions: `platforms/interface.py` and `platforms/cuda.py` (blocks, kernels),
    `v1/core/kv_cache_utils.py`, `v1/core/kv_cache_planning.py` (pools), `v1/kv_cache_interface.py` (states),
    `model_executor/models/config.py` (hybrids), `config/vllm.py` (batches in flight),
    `model_executor/layers/fused_moe/` and `model_executor/layers/quantization/` (weights).
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Final

from packaging.version import Version

from service.engine.engines.expert_tiles import ExpertTiles
from service.engine.engines.versions import Complete, Row, VersionTableError, in_order
from service.engine.inputs import SCALED_CACHES, CompressedPools, PagePacking, ScaledCacheDtype, StageRule


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRules:
    """What a version does its own way; the values are those of the newest."""

    version: str = "0.33"
    first_capability: tuple[int, int] = (7, 5)  # that published wheels have kernels for
    # Which kernels run, and the blocks they read.
    block_size: int = 16  # that no kernel widens [tokens]
    keeps_windows: bool = False  # of attention, whole, as if they had none
    keeps_mixed_windows: bool = False  # the same, but only beside layers of full attention
    keeps_chunks: bool = False  # of attention, whole: they came with a latency regression
    keeps_any_block: bool = False  # as stated, whatever kernels read
    kernels_set_blocks: bool = True  # the smallest block that all kernels accept; before, fixed ones by generation
    flashinfer_reads_fp8: bool = True  # off Hopper; before, Triton did
    scaled_caches: tuple[ScaledCacheDtype, ...] = SCALED_CACHES  # that `--kv-cache-dtype` takes, with scales inside
    pads_scaled_pages: bool = True  # of those whose layers differ
    nvfp4_caches_on: tuple[int, ...] = (8, 9, 10, 12)  # generations of compute capability
    mixes_kernels: bool = True  # Triton's for images, and a faster one for text; before, Triton's for both
    keeps_latents: bool = True  # of latent attention; before, the key and value of every head
    flashinfer_runs_latents: bool = True  # on compute capability 10; before, CUTLASS did
    workstations_run_sparse: bool = True  # Blackwell of compute capability 12
    refuses_other_floats: bool = True  # a cache of 16 bits in another dtype than the model's
    keeps_own_fp8_plain: bool = True  # sparse latents in the checkpoint's own fp8 on Hopper; before, packed
    glm_sparse_is_fp8: bool = True  # by itself, on compute capability 10
    keeps_past_in_fp4: bool = True  # that layers of DeepSeek V4.1 share, on compute capability 10
    aligns_records: bool = True  # blocks there are whole multiples of both kinds of records
    rescales_yarn: bool = False  # contexts are its original length times its factor, whatever a config states
    # How the pool is counted.
    counts_tokens_by_blocks: bool = False  # not by concurrency
    checks_usable_blocks: bool = True  # that the longest request fits: without the one that is never handed out
    reads_images_whole: bool = True  # whose tokens attend to each other: a step must hold one
    has_batches_in_flight: bool = True  # what is freed lags behind by several batches; before, by one
    plans_ahead: bool = True  # one more of them is planned while others run, unless a caller turns that off
    retains_for_drafts: bool = True  # windows are kept longer for several drafting modules
    page_packing: PagePacking = "packed"  # of different sizes side by side in one block (DeepSeek V4)
    counts_by_growing_group: bool = False  # requests at once: their bytes over those of its block (DeepSeek V4)
    fills_blocks: bool = True  # beside rings, with as many states as fit, and aligns them (GLM 5.3 Flash)
    # Recurrent states.
    caches_states: bool = True  # prefix caching of models with states, unless stated
    can_align_states: bool = True  # prefix caching with two states a request, on block boundaries
    exports_states: tuple[str, ...] = ("flash_kda", "mamba2", "delta")  # kernels that keep one while prefill goes on
    state_dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")  # that `--mamba-cache-dtype` takes
    reads_state_dtypes: bool = True  # that configs name
    waits_for_states: bool = False  # SGLang: with states of prefixes, no step is planned while one runs
    chunks_states: bool = False  # of who decodes beside prompts, in the kernel of prompts (pull request 44700)
    tunes_states: bool = True  # by sizes of Mamba's kernel kept for a GPU (pull requests 43083, 44251)
    hybrid_latent_tokens: int = 128  # blocks of latents beside states are whole multiples [tokens]
    # Weights in the kernels' formats.
    refines_expert_scales: bool = True  # of fp8 blocks that a rank's part does not fill
    triton_runs_experts: bool = True  # in MXFP4 on Hopper: its kernels come with the package; before, Marlin's
    copies_absorbed: bool = False  # SGLang: an unquantized up-projection of latents; vLLM looks into it
    drops_expert_scales: bool = True  # the loaded MXFP4 scales, once they are shuffled for Hopper's kernels
    expert_scale_multiple: int = 4  # Hopper's kernels pad the groups of a row to it
    pads_expert_values: bool = False  # Hopper's kernels, to whole lines of 64 bytes
    expert_value_rows: int = 1  # SGLang: Hopper's kernels pad the rows of a matrix to so many
    own_tiles: tuple[tuple[int, ExpertTiles], ...] = ()  # of gpt-oss's experts, by a GPU's generation; else as vLLM's
    expert_tile_on_ten: int = 1  # of experts without a gate, and some others, in SGLang on compute capability 10
    pads_plain_experts: bool = True  # without quantization, on compute capability 10
    indexes_every_layer: bool = False  # of selected latents, layers that reuse a selection as well
    keeps_for_images: bool = False  # SGLang: memory beside the pool for what is sent besides text
    keeps_features_on_hopper: bool = False  # SGLang: those of Qwen3-VL's images stay on the GPU
    has_own_classes: bool = False  # SGLang: hold embeddings, heads, copies and towers otherwise than vLLM's
    copies_fp4_scales: bool = False  # SGLang: of experts in NVFP4, where Marlin's kernels run
    unpacks_grouped: bool = False  # SGLang: projections multiplied in groups, but on compute capability 10
    names_fp4_kernels: bool = False  # SGLang: of fp4 experts in files of fp8, whose own choice does not read them
    keeps_wide_scales: bool = False  # SGLang: loaded ones of fp4 experts in files of fp8, where Marlin's kernels run
    caps_windows: bool = True  # SGLang: without prefixes, windowed pools by the requests that may run
    page_on_ten: int = 1  # SGLang: of plain attention on compute capability 10 [tokens]
    counts_stated_drafts: bool = True  # SGLang: in its pool, and others beside it
    pads_states: bool = True  # SGLang: one state of recurrent layers' pool is no request's
    is_strict_on_compressed: bool = False  # SGLang: beside a compressed past no cache of 16 bits, no lookup of drafts
    compressed_pools: CompressedPools = "padded"  # SGLang: states of compressors, and how pages are laid out
    projects_shared_caches: bool = False  # keys and values of layers that read another layer's cache
    keeps_wide_routers: bool = True  # in fp32 where the model asks for it and no kernel mixes types
    joins_copies: bool = False  # of the attention: all else is split over the ranks of all of them
    sends_to_experts: bool = False  # SGLang: `--moe-a2a-backend deepep`, as it is sized
    splits_copies: bool = True  # over several ranks each; TensorRT-LLM has one a rank
    names_half_caches: bool = True  # `--kv-cache-dtype bfloat16`
    spreads_context: bool = True  # `--decode-context-parallel-size`
    adapter_ranks: tuple[int, ...] = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # `--max-lora-rank`
    copies_attention: bool = True  # `--data-parallel-size`
    deals_out_experts: bool = True  # `--enable-expert-parallel`
    drafts_beside_states: bool = True  # speculation for every model with recurrent states; before, for Qwen3-Next
    deals_experts_evenly: bool = False  # SGLang, TensorRT-LLM: as many to every rank
    pads_vocabulary_for_ranks: bool = False  # SGLang, TensorRT-LLM: further, where 64 rows do not divide over them
    leaves_towers_out: bool = True  # `--language-model-only`
    cuts_prompts: bool = True  # to what a step holds; before, contexts of more than 32,768 tokens, or when told to
    drafts_in_stages: bool = True  # of pipelines; EAGLE-3 is another matter
    drafts_of_one_fit: bool = True  # a step has more tokens than one request has drafts, if layers make them
    drafts_for_adapters_fit: bool = True  # with both, a step holds the drafts of every request that may run
    loads_drafts_by_step: bool = False  # SGLang: prediction modules of some models, once for each drafted token
    shares_draft_ends: bool = True  # a draft has the model's embeddings and output head before pools are sized
    finds_own_formats: bool = True  # Mistral's own files before those of transformers
    stage_rule: StageRule = "middle"
    stages_deep_stacks: bool = True  # vLLM keeps a buffer of a step's image features beside the weights
    # Graphs of batches.
    most_captured_on_blackwell: int = 1024  # on compute capability 10; elsewhere 512 [tokens]
    captures_drafts: bool = True  # of each request
    captures_by_requests: bool = True  # no more than may run; before, up to the largest
    lacks_blocks_on_workstations: bool = False  # DeepGEMM's kernels of fp8 blocks, which it takes there all the same
    whole_blocks_on: tuple[str, ...] = ("CUDA", "ROCm")  # whose large blocks nothing splits while weights load
    interleaves_rotary: bool = True  # one rotary table for the three axes of images; before, four times as long


NEWEST: Final = PlanRules()


def _before(since: str, **otherwise: object) -> Row:
    """Return what vLLM did otherwise before a version."""
    return Row(name=f"vLLM before {since}", since=since, differences=otherwise)


VLLM: Final = (
    _before(
        "0.33",
        pads_scaled_pages=False,
        exports_states=("flash_kda", "mamba2"),
        refuses_other_floats=False,
        drafts_of_one_fit=False,
        aligns_records=False,
    ),
    _before(
        "0.32",
        exports_states=("flash_kda",),
        glm_sparse_is_fp8=False,
        interleaves_rotary=False,
        fills_blocks=False,
        nvfp4_caches_on=(10,),
    ),
    # 0.30 `_scoped_allocator_max_split`, `models/deepseek_v41/attention.py` (`kv_bytes_per_token`).
    _before("0.31", pads_plain_experts=False, whole_blocks_on=("CUDA",), keeps_past_in_fp4=False),
    # 0.29 `models/gemma4.py` and `gemma3n.py` (`QKVParallelLinear` in every layer).
    _before("0.30", keeps_own_fp8_plain=False, mixes_kernels=False, rescales_yarn=True, projects_shared_caches=True),
    _before("0.29", refines_expert_scales=False, exports_states=(), checks_usable_blocks=False),
    _before("0.28", caches_states=False, retains_for_drafts=False, most_captured_on_blackwell=512),
    _before("0.27", page_packing="by_size", counts_by_growing_group=True, hybrid_latent_tokens=64),
    _before("0.26", has_batches_in_flight=False, expert_scale_multiple=2),
    # Pull request 43477 chooses DeepGEMM on compute capability 12, of which the build of 0.24 has no kernels (issues
    # 47130, 47436: "The broken pair is specifically v0.24.0's support list plus its DeepGEMM pin").
    _before(
        "0.25",
        drops_expert_scales=False,
        lacks_blocks_on_workstations=True,
        scaled_caches=("int8_per_token_head", "fp8_per_token_head", "nvfp4"),
    ),
    _before(
        "0.24",
        lacks_blocks_on_workstations=False,
        page_packing="columns",
        workstations_run_sparse=False,
        chunks_states=True,
        tunes_states=False,
        captures_drafts=False,
    ),
    _before("0.23.1", indexes_every_layer=True),  # builds on the way to 0.24 call themselves candidates of 0.23.1
    # Pull requests 41680, 29978 and 22928 (`config/cache.py`: `MambaDType`).
    _before("0.22", pads_expert_values=True, state_dtypes=("float32", "float16")),
    # Pull request 41268 (`v1/worker/gpu_worker.py`: `_scoped_allocator_max_split`); 0.20.2 prints what it did before.
    # 0.20 raises NotImplementedError for nvfp4 (`v1/attention/backends/flashinfer.py`).
    _before("0.21", whole_blocks_on=(), scaled_caches=("int8_per_token_head", "fp8_per_token_head")),
    _before("0.20.1", counts_tokens_by_blocks=True),
    # Wheels and images are built with CUDA 13, which has no Volta (pull request 39878).
    _before("0.20", first_capability=(7, 0), scaled_caches=()),  # 0.19 `config/cache.py` (`CacheDType`)
    _before("0.18", kernels_set_blocks=False),
    # Up to 0.16 "Mamba with speculative decoding is not supported yet." (`model_executor/layers/mamba/abstract.py`).
    _before(
        "0.17", keeps_wide_routers=False, pads_expert_values=False, leaves_towers_out=False, drafts_beside_states=False
    ),
    _before("0.15", can_align_states=False, flashinfer_runs_latents=False),
    _before("0.14", keeps_chunks=True),
    _before("0.13", reads_images_whole=False, state_dtypes=("float32",), reads_state_dtypes=False),
    _before("0.12", finds_own_formats=False, drafts_for_adapters_fit=False, triton_runs_experts=False),  # pull 28788
    _before("0.11.1", flashinfer_reads_fp8=False, adapter_ranks=(8, 16, 32, 64, 128, 256, 320, 512)),
    _before("0.11", names_half_caches=False),  # 0.10.2 `config/cache.py` (`CacheDType`)
    _before("0.10.2", state_dtypes=(), spreads_context=False),
    _before("0.10", captures_by_requests=False),
    _before("0.9.1", keeps_mixed_windows=True),
    _before("0.8.3", copies_attention=False),
    _before("0.8", cuts_prompts=False, deals_out_experts=False, adapter_ranks=(8, 16, 32, 64, 128, 256)),
    _before("0.7.1", keeps_latents=False),
)


def plan_table(rows: Iterable[Row]) -> tuple[Complete[PlanRules], ...]:
    """Return the rules of all versions before each row's own, newest first.

    >>> plan_table([Row(name="toy before 2", since="2", differences={"fills_blocks": False})])[0].value.fills_blocks
    False

    Raises:
        VersionTableError: a row cannot be used as it stands.
    """
    rules, table = NEWEST, []
    for since, row in reversed(in_order(rows)):
        rules = _undone(rules, row)
        table.append(Complete(name=row.name, since=since, value=rules))
    return tuple(table)


def _undone(rules: PlanRules, row: Row) -> PlanRules:
    """Return the rules without a row's change; each of its values has to be one, and has to change something."""
    known = {rule.name for rule in fields(PlanRules)} - {"version"}
    for name, value in row.differences.items():
        if name not in known:
            raise VersionTableError(f"{row.name}: no rule is named {name}")
        after = getattr(rules, name)
        if type(value) is not type(after):
            raise VersionTableError(f"{row.name}: {name} is {value!r}, and {after!r} in newer versions")
        if value == after:
            raise VersionTableError(f"{row.name}: {name} is {value!r} in newer versions too")
    if not row.differences:
        raise VersionTableError(f"{row.name}: nothing was otherwise")
    return replace(rules, **row.differences)


_TABLE: Final = plan_table(VLLM)


def plan_of(version: Version) -> PlanRules:
    """Return how a version of vLLM plans.

    >>> plan_of(Version("0.27")).caches_states, plan_of(Version("0.28")).caches_states
    (False, True)
    """
    rules = next((row.value for row in reversed(_TABLE) if version < row.since), NEWEST)
    return replace(rules, version=str(version))
