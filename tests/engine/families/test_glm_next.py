"""GLM 5.3 Flash, against the planner of vLLM 0.33 and what others print of it.

Rows: `get_kv_cache_groups`, `get_kv_cache_config_from_groups` and `get_kv_cache_capacity` of vLLM 0.33.0, given what
`models/glm5next/common/` says each layer keeps, for a pool of 40 GiB.
"""

from typing import Any, NamedTuple

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.inputs import EngineSettings, KvCacheDtype, Layout
from service.engine.memory.cache_shape import shape_of
from service.engine.memory.draft_weights import draft_matrices
from service.engine.memory.parameters import num_parameters
from service.engine.memory.shared_pool import plan_kv_cache
from tests.engine.families.changed import refused_field

MODEL = "glm-5.3-flash"
POOL = 40 << 30
# GPU, ranks, cache, drafted tokens, context; block, bytes per block, blocks, tokens; layers of each group
Row = tuple[str, int, KvCacheDtype, int, int, int, int, int, int, list[int]]
ROWS: list[Row] = [
    ("h100", 1, "bf16", 0, 131_072, 4_352, 50_620_416, 848, 2_526_114, [9, 9, 8, 8, 22, 11]),
    ("h100", 4, "bf16", 0, 131_072, 1_152, 13_415_424, 3_201, 3_303_633, [9, 9, 8, 8, 22, 11]),
    ("h100", 4, "bf16", 3, 8_192, 1_152, 14_631_936, 2_935, 890_500, [12, 11, 11, 24, 12]),
    ("h100", 2, "fp8", 1, 8_192, 4_352, 36_022_272, 1_192, 650_990, [12, 11, 11, 24, 12]),
    ("h100", 8, "fp8", 0, 1_048_576, 1_152, 9_698_304, 4_428, 5_041_362, [12, 11, 11, 22, 11]),
    ("b200", 4, "fp8", 0, 131_072, 2_176, 13_516_800, 3_177, 5_627_239, [9, 9, 8, 8, 22, 11]),
    ("rtx-pro-6000", 2, "fp8", 3, 131_072, 4_608, 38_793_216, 1_107, 3_022_848, [12, 11, 11, 24, 12]),
]


class Planned(NamedTuple):
    """A rank's cache: block, bytes per block, blocks, tokens, and the layers of each group."""

    block_size: int
    bytes_per_block: int
    num_gpu_blocks: int
    tokens: int
    layers: list[int]


def planned(
    catalog: Snapshot,
    gpu: str,
    ranks: int,
    cache: KvCacheDtype,
    drafted: int = 0,
    context: int = 8_192,
    version: str | None = None,
) -> Planned:
    architecture, layout = catalog.model(MODEL).architecture, Layout(tensor_parallel_size=ranks)
    device = device_of(catalog.gpu(gpu), rules_for("vllm", version))
    settings = EngineSettings(
        gpu_memory_utilization=0.92,
        kv_cache_dtype=cache,
        max_model_len=context,
        max_num_batched_tokens=8_192,
        max_num_seqs=1_024,
        num_speculative_tokens=drafted,
        speculative_method="mtp" if drafted else None,
    )
    pool = plan_kv_cache(architecture, layout=layout, settings=settings, available_bytes=POOL, device=device)
    groups = shape_of(architecture, layout, settings, device).groups
    layers = [len(group.specs) for group in groups]
    return Planned(pool.block_size, pool.bytes_per_block, pool.num_gpu_blocks, pool.tokens, layers)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1:5]}")
def test_the_cache_equals_the_engine(catalog: Snapshot, row: Row) -> None:
    gpu, ranks, cache, drafted, context, *expected = row

    assert list(planned(catalog, gpu, ranks, cache, drafted, context)) == expected


def test_four_ranks_have_the_layers_and_blocks_that_a_connector_printed(catalog: Snapshot) -> None:
    """LMCache pull request 5042, four ranks: "Num layers: 67", "Tokens per block: 1152"."""
    cache = planned(catalog, "h200", 4, "bf16")

    assert (sum(cache.layers), cache.block_size) == (67, 1_152)


@pytest.mark.parametrize("version", ["0.30", "0.31"])
def test_older_versions_have_as_many_states_in_a_block_as_latents(catalog: Snapshot, version: str) -> None:
    """ModelEngine-Group/unified-cache-management pull request 1371: 11 slots, 34 layers in groups of 9, 9, 8 and 8.

    vLLM 0.30 `v1/core/kv_cache_utils.py` (`_get_kv_cache_groups_glm5_next`): a block holds 11 pages of both kinds.
    """
    cache = planned(catalog, "h100", 8, "fp8", version=version)

    assert cache.layers == [9, 9, 8, 8, 22, 11]
    assert cache.bytes_per_block == 11 * (cache.block_size * 656 + cache.block_size // 4 * 132)


def test_parameters_are_those_the_hub_counts_with_the_draft_layer(catalog: Snapshot) -> None:
    """huggingface.co/zai-org/GLM-5.3-Flash, safetensors: 321,323,031,390; two scales of the cache are in no file."""
    architecture = catalog.model(MODEL).architecture
    assert architecture.mtp is not None

    drafting = sum(matrix.elements for matrix in draft_matrices(architecture.mtp, Layout()))

    assert num_parameters(architecture) + drafting == 321_323_031_390 + 2


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"layer_types": ["linear_attention"] * 44 + ["full_attention"]}, "layer_types"),
        ({"layer_types": ["linear_attention"] * 44}, "layer_types"),
        ({"mla_use_nope": False}, "mla_use_nope"),
        ({"qk_rope_head_dim": 64}, "mla_use_nope"),
        ({"index_kpool": 1}, "index_kpool"),
        ({"index_kpool_always_select_tail": False}, "index_kpool"),
    ],
)
def test_what_the_engine_does_not_build_is_refused_by_name(
    catalog: Snapshot, changed: dict[str, Any], field: str
) -> None:
    assert refused_field(catalog, MODEL, changed) == f"model_config.{field}"
