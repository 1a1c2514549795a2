"""The vision or audio part of a multimodal model: weights and working memory, but no cache.

    elements on a rank = whole + split / tp
    live on a rank     = tokens x (whole + split / tp)

Sources:
    vLLM 0.33 `model_executor/models/` (towers), `multimodal/encoder_budget.py`.
"""

from dataclasses import dataclass, replace
from typing import Final

from service.engine.arithmetic import ceil_div
from service.engine.layers.base import Divisor

# Layers and width of the tower that SGLang takes others for multiples of, and takes one for that states neither.
TOWER: Final = (24, 1_024)


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoder:
    """The vision or audio part of a multimodal model: weights, but no cache."""

    split_parameters: int  # divided over tensor-parallel ranks
    whole_parameters: int  # the same on every rank
    num_heads: int | None = None  # that tensor parallelism must divide
    intermediate_size: int = 0  # that it must divide as well, where a family's sizes are odd
    is_whole_where_uneven: bool = False  # where it does not, every rank holds the whole tower instead
    beside: "Encoder | None" = None  # a part with heads of its own, such as the tower for sound
    max_tokens_per_item: int = 0  # what one image or video adds to a prompt at most [tokens]
    # Alive at once in its widest layer, per prompt token; 0 where unknown.
    split_elements_per_token: int = 0  # divided over tensor-parallel ranks
    whole_elements_per_token: int = 0
    most_pictures: int = 1  # of a video, each of as many tokens as an image; no more than the context holds
    unbounded_tokens: int = 0  # of the longest video, for versions that do not bound it by the context [tokens]
    copied_parameters: int = 0  # that vLLM splits and SGLang has whole on every rank; below 0: the other way round
    outputs: int = 1  # vectors as wide as the language model that one token yields: its own, and one per deep stack

    def parameters(self, tensor_parallel_size: int) -> int:
        """Return the parameters of the tower, and of any beside it, on one rank.

        >>> tower = Encoder(split_parameters=1_000, whole_parameters=10, num_heads=16, is_whole_where_uneven=True)
        >>> tower.parameters(8), tower.parameters(3)
        (135, 1010)
        """
        is_whole = (
            self.is_whole_where_uneven and self.num_heads is not None and self.num_heads % tensor_parallel_size > 0
        )
        own = self.whole_parameters + ceil_div(self.split_parameters, 1 if is_whole else tensor_parallel_size)
        return own + (0 if self.beside is None else self.beside.parameters(tensor_parallel_size))

    def copied(self) -> "Encoder":
        """Return the tower of an engine that splits less of it.

        >>> Encoder(split_parameters=1_000, whole_parameters=10, copied_parameters=600).copied().parameters(8)
        660
        """
        return replace(
            self,
            split_parameters=self.split_parameters - self.copied_parameters,
            whole_parameters=self.whole_parameters + self.copied_parameters,
            copied_parameters=0,
        )

    def whole(self) -> "Encoder":
        """Return the tower of an engine that splits nothing of it.

        >>> Encoder(split_parameters=1_000, whole_parameters=10, num_heads=16).whole().parameters(8)
        1010
        """
        beside = None if self.beside is None else self.beside.whole()
        parameters = self.split_parameters + self.whole_parameters
        whole = replace(self, split_parameters=0, whole_parameters=parameters, copied_parameters=0, beside=beside)
        return whole.padded()

    def padded(self) -> "Encoder":
        """Return the tower of an engine that adds heads until ranks divide them.

        >>> len(Encoder(split_parameters=1_000, whole_parameters=10, num_heads=12).padded().divisors)
        0
        """
        return replace(self, num_heads=None)

    def live_elements(self, tensor_parallel_size: int) -> int:
        """Return what is alive per prompt token in the widest layer on one rank. [elements]."""
        divides = self.num_heads is None or self.num_heads % tensor_parallel_size == 0
        ranks = tensor_parallel_size if self.split_parameters > 0 and divides else 1
        return ceil_div(self.split_elements_per_token, ranks) + self.whole_elements_per_token

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return heads and columns of the tower, and of any beside it."""
        sizes = () if self.beside is None else self.beside.divisors
        if self.num_heads is not None and not self.is_whole_where_uneven:
            sizes += (Divisor(name="attention heads of the vision or audio tower", size=self.num_heads),)
        if self.intermediate_size:
            sizes += (Divisor(name="feed-forward columns of the vision tower", size=self.intermediate_size),)
        return sizes
