"""What families ask of a layer that is already read."""

from collections.abc import Callable, Sequence

from service.engine.layers import Attention, DecoderLayer, GroupedQueryAttention, LatentAttention


def each_softmax(
    mixers: tuple[Attention, ...], change: Callable[[GroupedQueryAttention], Attention]
) -> tuple[Attention, ...]:
    """Return a layer's mixers with the softmax ones changed."""
    return tuple(change(mixer) if isinstance(mixer, GroupedQueryAttention) else mixer for mixer in mixers)


def has_softmax(layer: DecoderLayer) -> bool:
    """Return whether a layer has softmax attention with keys and values of its own."""
    return any(isinstance(mixer, GroupedQueryAttention) for mixer in layer.mixers)


def slides(layer: DecoderLayer) -> bool:
    """Return whether that attention has a window."""
    return any(isinstance(mixer, GroupedQueryAttention) and mixer.sliding_window is not None for mixer in layer.mixers)


def chooses_tokens(layer: DecoderLayer) -> bool:
    """Return whether a layer selects the tokens it attends to itself."""
    return any(isinstance(mixer, LatentAttention) and mixer.indexer is not None for mixer in layer.mixers)


def last(layers: Sequence[DecoderLayer], *wishes: Callable[[DecoderLayer], bool]) -> DecoderLayer:
    """Return the last layer that grants as many of these wishes, in their order, as any layer does."""
    left = layers
    for wish in wishes:
        left = [layer for layer in left if wish(layer)] or left
    return left[-1]
