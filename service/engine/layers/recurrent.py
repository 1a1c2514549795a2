"""What every layer with a state of fixed size has in common: one page a request, whatever its length.

    page              = the state, whole
    pages per request = 1 running (+ 1 being written, where states are kept) (+ 1 checkpoint, where prefill exports it)
                        + 1 for each drafted token
    bytes of a step   = 2 x state

Source:
    vLLM 0.33 `v1/kv_cache_interface.py` (`MambaSpec`), each layer's `get_kv_cache_spec`.
"""

from abc import abstractmethod

from service.engine.formats.elements import HALF_BYTES
from service.engine.layers.base import ANY_PAGE, DetailRule, KernelNeed, Mixer, Role, Spread, Work
from service.engine.layers.cache import CacheSharing, CacheSpec, Checkpoint, Sharding
from service.engine.layers.rotary import Rotated


class RecurrentMixer(Mixer):
    """A layer that carries a state along each request; a variant says how large and when prefill exports it."""

    __slots__ = ()

    @abstractmethod
    def state_bytes(self, sharding: Sharding, /) -> int:
        """Return the bytes of one request's state on one rank. [bytes].

        Convolutions also keep the inputs of drafted tokens, where the kernel can run several at once.
        """

    @property
    @abstractmethod
    def checkpoint(self) -> Checkpoint | None:
        """Return the kernel by which prefill can keep a state for prefix caching; None without one.

        Source: vLLM 0.33, each layer's `get_kv_cache_spec` (`prefill_checkpoint_alignment`).
        """

    @property
    def sharing(self) -> CacheSharing | None:
        """Return that a state has no keys."""
        return None

    @property
    def role(self) -> Role:
        """Return that a state is carried along."""
        return "recurrent"

    def caches(self, sharding: Sharding, /) -> tuple[CacheSpec, ...]:
        """Return the state as one page."""
        is_exported = sharding.keeps_states and self.checkpoint in sharding.exporting
        # A running state; where they are kept also the one being written, and a checkpoint.
        pages = 1 + sharding.keeps_states + is_exported
        state = CacheSpec(
            kind="mamba",
            block_size=sharding.block_size,
            token_bytes=0,
            state_bytes=self.state_bytes(sharding),
            pages_per_request=pages + sharding.num_speculative_tokens,
            checkpoint_tokens=self.checkpoint.tokens if self.checkpoint is not None and is_exported else 0,
        )
        return (state,)

    @property
    def kernel_needs(self) -> tuple[KernelNeed, ...]:
        """Return none: no kernel reads a state in blocks."""
        return ()

    @property
    def page_size(self) -> int | None:
        """Return that states do not mind. [tokens]."""
        return ANY_PAGE

    @property
    def spread(self) -> Spread:
        """Return that there are no tokens to share."""
        return Spread()

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return that adapter buffers have no rule."""
        return None

    @property
    def rotated(self) -> Rotated | None:
        """Return nothing."""
        return None

    def detailed(self, _details: DetailRule, /) -> Mixer:
        """Return itself: a state has no softmax heads."""
        return self

    @property
    def draft_attention(self) -> Mixer | None:
        """Return that no draft follows from a recurrence."""
        return None

    def work(self, tensor_parallel_size: int, cache_element_bytes: int, /) -> Work:
        """Return the state, read and written by every step."""
        sharding = Sharding(
            tensor_parallel_size=tensor_parallel_size,
            cache_element_bytes=cache_element_bytes,
            model_element_bytes=HALF_BYTES,
        )
        return Work(state_bytes=2.0 * self.state_bytes(sharding))
