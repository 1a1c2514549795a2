"""What the engine refuses to start on a GPU."""

from typing import Any

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.engines.device import device_of
from service.engine.errors import EngineError, RefusedStartError
from service.engine.fleet.questions import StatedSettings
from service.engine.fleet.settings import resolve
from service.engine.fleet.starts import check_block_size, check_state_dtypes
from service.engine.inputs import EngineSettings, Layout
from service.engine.memory.separate_pools import plan_separate_pools


@pytest.mark.parametrize("version", ["0.8.5", "0.33"])
def test_vllm_reads_blocks_of_whole_multiples_of_sixteen(catalog: Snapshot, version: str) -> None:
    """vLLM 0.33 `v1/attention/backend.py` (`supports_block_size`); 0.8.5 `flash_attn.py` (`get_kv_cache_shape`)."""
    device = device_of(catalog.gpu("h100"), rules_for("vllm", version))

    check_block_size(16, device)
    check_block_size(128, device)
    with pytest.raises(EngineError, match="no attention kernel that reads blocks of 8 tokens"):
        check_block_size(8, device)


@pytest.mark.parametrize("gpu", ["mi300x", "gaudi3"])
def test_no_platform_reads_blocks_of_eight_tokens_by_heads(catalog: Snapshot, gpu: str) -> None:
    """vLLM 0.33 `v1/attention/backends/rocm_attn.py` and beside it: multiples of 16; latents on AMD in any."""
    part, rules = catalog.gpu(gpu), rules_for("vllm")

    with pytest.raises(RefusedStartError, match="blocks of 8 tokens"):
        resolve(catalog.model("llama-3.1-8b"), part, StatedSettings(block_size=8), rules)

    assert resolve(catalog.model("deepseek-v3"), part, StatedSettings(block_size=1), rules).settings.block_size == 1


@pytest.mark.parametrize(
    ("stated", "field"),
    [
        ({"kv_cache_dtype": "bf16"}, "kv_cache_dtype"),
        ({"num_speculative_tokens": 2, "speculative_method": "ngram"}, "speculative_method"),
    ],
)
def test_sglang_stops_over_what_a_compressed_past_does_not_go_with(
    catalog: Snapshot, stated: dict[str, Any], field: str
) -> None:
    """SGLang 0.5.23 `mem_cache/deepseek_v4_memory_pool.py`: `assert self.store_dtype == torch.uint8`."""
    gpu, rules = catalog.gpu("h200"), rules_for("sglang")
    with pytest.raises(RefusedStartError) as refused:
        resolve(catalog.model("deepseek-v4-flash"), gpu, StatedSettings(**stated), rules)

    assert refused.value.field == field
    resolve(catalog.model("deepseek-v3"), gpu, StatedSettings(**stated), rules)
    resolve(catalog.model("deepseek-v4-flash"), gpu, StatedSettings(num_speculative_tokens=1), rules)


def test_sglang_has_no_word_for_a_cache_of_float16(catalog: Snapshot) -> None:
    """SGLang 0.5.23 `arg_groups/fields/model.py` (`kv_cache_dtype`): auto, bf16 and eight or fewer bits."""
    model, gpu, stated = catalog.model("llama-3.1-8b"), catalog.gpu("h100"), StatedSettings(kv_cache_dtype="fp16")

    with pytest.raises(RefusedStartError, match="has no word for it"):
        resolve(model, gpu, stated, rules_for("sglang"))


@pytest.mark.parametrize(("gpu", "latent_bytes"), [("h200", 656), ("b200", 576), ("mi355x", 576), ("mi300x", 576)])
def test_sglang_keeps_selected_latents_in_fp8_without_scales_on_blackwell_and_rocm(
    catalog: Snapshot, gpu: str, latent_bytes: int
) -> None:
    """SGLang 0.5.10 and 0.5.23 `calculate_mla_kv_cache_dim`: "nope(512 fp8) + rope(64 fp8)" with TRT-LLM's and HIP's.

    A log of GLM-5-FP8 on eight MI355X of February 2026 sizes its pool so, of which the weights leave 0.908 x 283.5 -
    89.58 GiB: "#tokens: 3262823" of 78 x (576 + 132) bytes, 132 the indexer's.
    """
    model, stated = catalog.model("glm-5"), StatedSettings(kv_cache_dtype="fp8")
    settings = resolve(model, catalog.gpu(gpu), stated, rules_for("sglang")).settings

    pool = plan_separate_pools(
        model.architecture, layout=Layout(), settings=settings, available_bytes=int(167.84 * 2**30)
    )

    assert pool.bytes_per_token_per_gpu == 78 * (latent_bytes + 132)
    assert latent_bytes != 576 or pool.tokens == pytest.approx(3_262_823, rel=1e-3)


# vLLM's version, model, field, dtype; `config/cache.py` (`MambaDType`) of each version, and pull requests 22928, 29978
# and 41680; 0.33 `model_executor/layers/mamba/mamba_utils.py` (`kda_state_dtype`, `linear_attention_state_dtype`)
REFUSED_STATES = [
    ("0.9.2", "qwen3-next-80b-a3b-instruct", "mamba_cache_dtype", "float32"),
    ("0.12", "qwen3-next-80b-a3b-instruct", "mamba_ssm_cache_dtype", "float16"),
    ("0.20.2", "qwen3-next-80b-a3b-instruct", "mamba_cache_dtype", "bfloat16"),
    ("0.33", "kimi-linear-48b-a3b-instruct", "mamba_ssm_cache_dtype", "bfloat16"),
    ("0.33", "kimi-k3", "mamba_ssm_cache_dtype", "float16"),
]


@pytest.mark.parametrize(("version", "model", "field", "dtype"), REFUSED_STATES)
def test_vllm_refuses_dtypes_of_states_that_a_version_or_a_layer_does_not_take(
    catalog: Snapshot, version: str, model: str, field: str, dtype: str
) -> None:
    architecture, device = catalog.model(model).architecture, device_of(catalog.gpu("h100"), rules_for("vllm", version))

    with pytest.raises(RefusedStartError) as refused:
        check_state_dtypes(architecture, device, states(**{field: dtype}))

    assert refused.value.field == field
    check_state_dtypes(architecture, device, states())


def test_what_a_version_takes_is_taken(catalog: Snapshot) -> None:
    architecture = catalog.model("qwen3-next-80b-a3b-instruct").architecture
    for version, dtype in (("0.11", "float32"), ("0.13", "float16"), ("0.22", "bfloat16")):
        device = device_of(catalog.gpu("h100"), rules_for("vllm", version))
        check_state_dtypes(architecture, device, states(mamba_cache_dtype=dtype, mamba_ssm_cache_dtype=dtype))


def states(**stated: Any) -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="auto",
        max_model_len=4_096,
        max_num_batched_tokens=2_048,
        max_num_seqs=64,
        **stated,
    )


# vLLM 0.9.2 `v1/worker/gpu_model_runner.py`, 0.11.0 to 0.16.0 `model_executor/layers/mamba/abstract.py`
@pytest.mark.parametrize(
    ("model", "version", "starts"),
    [
        ("falcon-h1-34b-instruct", "0.12.0", False),
        ("granite-4.0-h-small", "0.11.0", False),
        ("nemotron-nano-9b-v2", "0.16.0", False),
        ("nemotron-nano-9b-v2", "0.18.1", True),
        ("qwen3-next-80b-a3b-instruct", "0.12.0", True),
        ("llama-3.1-8b", "0.12.0", True),
    ],
)
def test_drafts_beside_states_wait_for_a_version(catalog: Snapshot, model: str, version: str, *, starts: bool) -> None:
    stated = StatedSettings(num_speculative_tokens=4, speculative_method="ngram")
    facts, gpu, rules = catalog.model(model), catalog.gpu("h100"), rules_for("vllm", version)

    if starts:
        assert resolve(facts, gpu, stated, rules).settings.num_speculative_tokens == 4
    else:
        with pytest.raises(RefusedStartError, match="does not draft for models with recurrent states"):
            resolve(facts, gpu, stated, rules)


def test_a_cache_that_the_checkpoint_asks_for_is_refused_with_what_helps(catalog: Snapshot) -> None:
    # nvidia's NVFP4 checkpoints declare an fp8 cache, which Triton's attention reads from compute capability 8.9 on.
    facts, gpu, rules = catalog.model("llama-3.1-8b"), catalog.gpu("t4"), rules_for("vllm")

    with pytest.raises(RefusedStartError, match="the checkpoint asks for it") as refused:
        resolve(facts, gpu, StatedSettings(weight_format="nvfp4"), rules)
    assert (refused.value.accepted or "").startswith("fp16,")
    assert resolve(facts, gpu, StatedSettings(weight_format="nvfp4", kv_cache_dtype="fp16"), rules).settings


@pytest.mark.parametrize(
    ("version", "rank", "starts"),
    [
        ("0.7.3", 256, True),
        ("0.7.3", 320, False),  # its `config.py`: `possible_max_ranks` ends with 256
        ("0.8.0", 512, True),
        ("0.11.0", 1, False),
        ("0.11.2", 1, True),  # `config/lora.py`: MaxLoRARanks begins with 1
    ],
)
def test_adapters_have_ranks_that_the_version_takes(
    catalog: Snapshot, version: str, rank: int, *, starts: bool
) -> None:
    model, gpu, rules = catalog.model("llama-3.1-8b"), catalog.gpu("h100"), rules_for("vllm", version)
    stated = StatedSettings(max_loras=2, max_lora_rank=rank)

    if starts:
        assert resolve(model, gpu, stated, rules).settings.max_lora_rank == rank
    else:
        with pytest.raises(RefusedStartError, match=f"takes no max_lora_rank of {rank}"):
            resolve(model, gpu, stated, rules)
