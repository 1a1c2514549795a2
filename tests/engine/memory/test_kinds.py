"""Layers told alike are those whose matrices are the same, stored the same: compared one by one."""

import pytest

from service.catalog.snapshot import Snapshot
from service.engine.formats.matrix import Matrix
from service.engine.formats.scheme import Quantization
from service.engine.formats.stored import matrix_bytes
from service.engine.inputs import Layout
from service.engine.layers import Architecture, DecoderLayer
from service.engine.memory.kinds import layer_kinds, stored_alike
from service.engine.memory.matrices import layer_matrices

MODELS = ("llama-3.1-8b-instruct", "deepseek-v3", "qwen3-next-80b-a3b-instruct", "gemma-3-27b", "llama-4-maverick")


def told(architecture: Architecture, layer: DecoderLayer, quantization: Quantization) -> list[tuple[str, int, int]]:
    """Return name, elements and bytes of each matrix of a layer."""

    def stored(matrix: Matrix) -> int:
        return matrix_bytes(matrix, quantization, architecture.element_bytes)

    matrices = layer_matrices(architecture, layer, Layout())
    return [
        (each.module.removeprefix(f"model.layers.{layer.index}."), each.elements, stored(each)) for each in matrices
    ]


@pytest.mark.parametrize("model", MODELS)
def test_layers_of_a_kind_hold_the_same_matrices(catalog: Snapshot, model: str) -> None:
    facts = catalog.model(model)
    architecture = facts.architecture
    for checkpoint in facts.checkpoints:
        alike = stored_alike(architecture, checkpoint.quantization)
        assert set(alike) >= set(layer_kinds(architecture))
        for layer, first in zip(architecture.layers, alike, strict=True):
            of_first = told(architecture, architecture.layers[first], checkpoint.quantization)
            assert told(architecture, layer, checkpoint.quantization) == of_first


def test_a_layer_that_a_checkpoint_names_is_of_a_kind_of_its_own(catalog: Snapshot) -> None:
    architecture = catalog.model("llama-3.1-8b-instruct").architecture
    named = Quantization(scheme="fp8-tensor", ignored=("model.layers.3.mlp", "re:.*gate$"))
    unnamed = Quantization(scheme="fp8-tensor", ignored=("lm_head", "re:.*gate$"))

    assert stored_alike(architecture, named)[:6] == (0, 0, 0, 3, 0, 0)
    assert set(stored_alike(architecture, unnamed)) == {0}
