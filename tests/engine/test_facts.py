"""Facts are compared by what they state, not by who built them."""

from dataclasses import replace

import pytest

from service.catalog.snapshot import Snapshot, build_snapshot
from service.engine.facts import ModelFacts, format_of


@pytest.fixture(scope="module")
def rebuilt(catalog: Snapshot) -> Snapshot:
    """The same catalog, built from the same entries by somebody else."""
    return build_snapshot(catalog.entries)


def test_every_model_and_gpu_equals_itself_built_again(catalog: Snapshot, rebuilt: Snapshot) -> None:
    sizable = [entry.id for entry in catalog.entries.models if catalog.refusal(entry.id) is None]

    assert {catalog.model(name) for name in sizable} == {rebuilt.model(name) for name in sizable}
    assert set(catalog.gpus.values()) == set(rebuilt.gpus.values())
    assert catalog.model(sizable[0]) is not rebuilt.model(sizable[0])


def test_no_two_of_the_catalog_are_equal(catalog: Snapshot) -> None:
    sizable = [entry.id for entry in catalog.entries.models if catalog.refusal(entry.id) is None]

    assert len({catalog.model(name).key for name in sizable}) == len(sizable)
    assert len({gpu.key for gpu in catalog.gpus.values()}) == len(catalog.gpus)


@pytest.mark.parametrize(
    "change",
    [
        {"id": "another"},
        {"source": "https://example.com"},
        {"config_json": "{}"},
        {"weight_bytes": 1},
        {"checkpoints": ()},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_model_that_states_something_else_is_another(catalog: Snapshot, change: dict[str, object]) -> None:
    model = catalog.model("qwen3-32b")

    assert replace(model, **change) != model  # type: ignore[arg-type]


def test_a_model_without_its_config_is_told_apart_by_its_architecture(catalog: Snapshot) -> None:
    one, other = catalog.model("qwen3-32b"), catalog.model("llama-3.3-70b")

    def bare(model: ModelFacts) -> ModelFacts:
        return ModelFacts(id="bare", architecture=model.architecture, checkpoints=(), source=None)

    assert bare(one) == bare(one)
    assert bare(one) != bare(other)


def test_a_checkpoint_stored_otherwise_is_another(catalog: Snapshot) -> None:
    checkpoint = catalog.model("qwen3-32b").checkpoints[0]

    assert replace(checkpoint) == checkpoint
    assert replace(checkpoint, kv_cache_dtype="fp8") != checkpoint


@pytest.mark.parametrize(
    "change",
    [{"memory_bytes": 1}, {"peak_flop_per_s": {"bf16": 1.0}}, {"gpus_per_node": 3}, {"measured_as": "unheard_of"}],
    ids=lambda change: next(iter(change)),
)
def test_a_gpu_that_states_something_else_is_another(catalog: Snapshot, change: dict[str, object]) -> None:
    gpu = catalog.gpu("h100")

    assert replace(gpu) == gpu
    assert hash(replace(gpu)) == hash(gpu)
    assert replace(gpu, **change) != gpu  # type: ignore[arg-type]


def test_the_order_in_which_peaks_are_stated_does_not_matter(catalog: Snapshot) -> None:
    gpu = catalog.gpu("h100")
    turned = replace(gpu, peak_flop_per_s=dict(reversed(list(gpu.peak_flop_per_s.items()))))

    assert turned == gpu


@pytest.mark.parametrize(
    "model", ["deepseek-v4-flash", "deepseek-v4-pro", "deepseek-v3.2", "gpt-oss-20b", "llama-3.1-8b"]
)
def test_the_format_is_that_of_the_experts_where_these_are_most_of_it(catalog: Snapshot, model: str) -> None:
    """config.json of DeepSeek-V4-Flash says fp8, with `expert_dtype` fp4; nvidia's says `moe_quant_algo` NVFP4."""
    facts = catalog.model(model)
    stated = catalog.model_entries[facts.id].checkpoints

    read = {
        each.hf_id: format_of(each.architecture or facts.architecture, each.quantization) for each in facts.checkpoints
    }

    assert read == {each.hf_id: each.weight_format for each in stated if each.hf_id in read}
