"""What families ask of a layer that is already read."""

from collections.abc import Callable, Sequence

from service.engine.layers import DecoderLayer


def drafts_alike(layer: DecoderLayer) -> bool:
    """Return whether a layer has attention that a draft can have as well: softmax heads with keys of their own."""
    return any(mixer.draft_attention is not None for mixer in layer.mixers)


def slides(layer: DecoderLayer) -> bool:
    """Return whether that attention has a window."""
    return any(mixer.draft_attention is not None and mixer.spread.is_local for mixer in layer.mixers)


def chooses_tokens(layer: DecoderLayer) -> bool:
    """Return whether a layer selects the tokens it attends to itself."""
    return any(mixer.live(1).selected_ratio is not None for mixer in layer.mixers)


def last(layers: Sequence[DecoderLayer], *wishes: Callable[[DecoderLayer], bool]) -> DecoderLayer:
    """Return the last layer that grants as many of these wishes, in their order, as any layer does."""
    left = layers
    for wish in wishes:
        left = [layer for layer in left if wish(layer)] or left
    return left[-1]
