"""Layers that are alike: of equal parts, and with their matrices stored alike. What is said of one holds for all.

A model has up to a hundred layers and hardly more than four kinds of them.
"""

from service.engine.derived import derived
from service.engine.formats.quantization import Quantization
from service.engine.inputs import Layout
from service.engine.layers import Architecture
from service.engine.memory.matrices import layer_matrices


@derived(1)
def layer_kinds(architecture: Architecture) -> tuple[int, ...]:
    """Return for each layer the place of the first one of equal parts; what is the same object is compared once."""
    firsts: dict[object, int] = {}
    by_object: dict[tuple[int, ...], int] = {}
    kinds = []
    for place, layer in enumerate(architecture.layers):
        objects = tuple(map(id, layer.parts))
        if objects not in by_object:
            by_object[objects] = firsts.setdefault(layer.parts, place)
        kinds.append(by_object[objects])
    return tuple(kinds)


@derived(16)
def stored_alike(architecture: Architecture, quantization: Quantization) -> tuple[int, ...]:
    """Return for each layer the place of the first one of equal parts whose matrices are stored alike."""
    kinds = layer_kinds(architecture)
    if not quantization.tells_layers_apart:
        return kinds
    firsts: dict[object, int] = {}
    return tuple(
        firsts.setdefault((kind, _storing(architecture, kind, place, quantization)), place)
        for place, kind in enumerate(kinds)
    )


def _storing(architecture: Architecture, kind: int, place: int, quantization: Quantization) -> tuple[object, ...]:
    """Return how each matrix of a layer of some kind is stored."""
    prefix = _layer_name(architecture, place)
    modules = [prefix + name for name in _names(architecture, kind)]
    return tuple((scheme, scheme.keeps(module)) for module in modules for scheme in (quantization.of(module),))


@derived(32)
def _names(architecture: Architecture, kind: int) -> tuple[str, ...]:
    """Return the names of a layer's matrices below its own: the same on any layout."""
    prefix = _layer_name(architecture, kind)
    matrices = layer_matrices(architecture, architecture.layers[kind], Layout())
    return tuple(matrix.module.removeprefix(prefix) for matrix in matrices)


def _layer_name(architecture: Architecture, place: int) -> str:
    """Return what a layer's matrices are named below, as `layer_matrices` has it."""
    return f"model.layers.{architecture.layers[place].index}."
