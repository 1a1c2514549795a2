"""A model as a config of another class: it holds the same bytes, multiplies as much and caches the same."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.facts import ModelFacts
from service.engine.families import parse_architecture
from service.engine.fleet.checkpoints import own_checkpoint
from service.engine.inputs import Layout
from service.performance.kernels import measured_step_tables
from service.performance.restated import restated
from service.performance.workload import workload_of
from tests.conftest import shared_tables
from tests.performance.test_siblings import deployed


def of_catalog(catalog: Snapshot) -> list[ModelFacts]:
    return [model for model in catalog.built_models.values() if isinstance(model, ModelFacts)]


def test_another_class_s_config_describes_the_same_model(catalog: Snapshot) -> None:
    # Ours is read anew as that class publishes it: what differs would be timed as another model. Norms, biases
    # and wide routers differ, and experts for images, which text does not pass.
    gpu, told = catalog.gpu("h200"), 0
    for model in of_catalog(catalog):
        config = restated(model.architecture)
        if config is None:
            continue
        told += 1
        quantization = own_checkpoint(model).quantization
        own, other = (
            workload_of(each, quantization, gpu, Layout(), "bf16")
            for each in (model.architecture, parse_architecture(config))
        )
        assert sum(it.weight_bytes for it in other.matrices) == pytest.approx(
            sum(it.weight_bytes for it in own.matrices), rel=0.03
        ), model.id
        assert sum(it.flop_per_token for it in other.matrices) == pytest.approx(
            sum(it.flop_per_token for it in own.matrices), rel=0.02
        ), model.id
        assert sum(it.token_bytes for it in other.mixers) == sum(it.token_bytes for it in own.mixers), model.id
        assert sum(it.state_bytes for it in other.mixers) == sum(it.state_bytes for it in own.mixers), model.id
        if not any(mlp.has_experts and "VL" in model.architecture.name for mlp in model.architecture.feed_forwards):
            assert sum(it.weight_bytes for it in other.experts) == pytest.approx(
                sum(it.weight_bytes for it in own.experts), rel=0.01
            ), model.id

    assert told > 500


@pytest.mark.parametrize(("model", "ranks"), [("glm-4-32b-0414", 1), ("qwen2.5-vl-7b-instruct", 1), ("falcon-40b", 4)])
def test_kernels_of_the_same_sizes_are_found_whatever_a_class_is_called(
    catalog: Snapshot, model: str, ranks: int
) -> None:
    # Of 640 models, 384 are of classes that the library of kernels does not know by name.
    key = deployed(catalog, model, "h200", ranks)
    tables = measured_step_tables(key, shared_tables())

    bytes_read = sum(
        it.weight_bytes
        for it in workload_of(key.model.architecture, key.checkpoint.quantization, key.gpu, key.layout, "bf16").matrices
    )
    assert bytes_read / key.gpu.memory_bandwidth_bytes_per_s < tables.decode[0][0]
    assert tables.decode[0][0] < 2 * bytes_read / key.gpu.memory_bandwidth_bytes_per_s + 5e-3


def test_layers_of_two_sizes_are_told_by_no_class_that_has_one(catalog: Snapshot) -> None:
    assert restated(catalog.model("gemma-3n-e4b-it").architecture) is None
    assert restated(catalog.model("jamba-1.5-mini").architecture) is None
