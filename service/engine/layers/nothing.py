"""Parts that a layer does without: pruned away, or never there.

    bytes = flop = 0

Source:
    A. Bercovich et al., Puzzle: distillation-based NAS for inference-optimized LLMs (arXiv:2411.19146), whose
    blocks may be `no_op`; vLLM 0.33 `model_executor/models/nemotron_nas.py`, `nemotron_h.py`.
"""

from dataclasses import dataclass

from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.layers.base import (
    ANY_PAGE,
    DetailRule,
    Divisor,
    FeedForward,
    KernelNeed,
    LiveElements,
    Mixer,
    Role,
    Spread,
    Work,
)
from service.engine.layers.cache import CacheSharing, CacheSpec, Sharding
from service.engine.layers.rotary import Rotated
from service.engine.layers.shapes import Routing


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAttention(Mixer):
    """A block without token mixing (a feed-forward-only layer, or one pruned away).

    >>> NoAttention().caches(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
    ()
    """

    @property
    def sharing(self) -> CacheSharing | None:
        """Return that nothing is kept."""
        return None

    @property
    def role(self) -> Role:
        """Return that nothing is mixed."""
        return "none"

    def caches(self, _sharding: Sharding) -> tuple[CacheSpec, ...]:
        """Return none."""
        return ()

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return none."""
        return ()

    @property
    def page_size(self) -> int | None:
        """Return that any page will do. [tokens]."""
        return ANY_PAGE

    @property
    def spread(self) -> Spread:
        """Return that there is nothing to share."""
        return Spread()

    def matrices(self, _hidden_size: int, _layout: Layout, _prefix: str) -> list[Matrix]:
        """Return none."""
        return []

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return none."""
        return ()

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return nothing."""
        return LiveElements(per_token=0)

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers of models with such layers have no rule."""
        return None

    @property
    def rotated(self) -> Rotated | None:
        """Return nothing."""
        return None

    def detailed(self, _details: DetailRule) -> Mixer:
        """Return itself: there are no heads."""
        return self

    @property
    def draft_attention(self) -> Mixer | None:
        """Return that no draft follows."""
        return None

    def work(self, _tensor_parallel_size: int, _cache_element_bytes: int) -> Work:
        """Return nothing."""
        return Work()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoMlp(FeedForward):
    """A layer without feed-forward part."""

    @property
    def is_empty(self) -> bool:
        """Return that nothing is there."""
        return True

    @property
    def routing(self) -> Routing | None:
        """Return that there are no experts."""
        return None

    def matrices(self, _hidden_size: int, _layout: Layout, _prefix: str) -> list[Matrix]:
        """Return none."""
        return []

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return none."""
        return ()

    @property
    def live_elements(self) -> int:
        """Return nothing. [elements]."""
        return 0

    def workspace_elements(self, _hidden_size: int, _layout: Layout) -> int:
        """Return nothing. [elements]."""
        return 0

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers of models with such layers have no rule."""
        return None

    @property
    def active_columns(self) -> int:
        """Return none."""
        return 0
