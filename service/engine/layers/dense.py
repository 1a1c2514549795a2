"""One feed-forward network: gated ones have three matrices, plain ones two.

    elements = (3 or 2) x hidden x columns / tp

Sources:
    N. Shazeer, GLU variants improve transformer (arXiv:2002.05202); vLLM 0.33 `model_executor/models/llama.py`
    (`LlamaMLP`), `lora/layers/column_parallel_linear.py` for adapters.
"""

from dataclasses import dataclass

from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, FeedForward
from service.engine.layers.shapes import NetworkShape, Routing, gated_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class DenseMlp(FeedForward):
    """One feed-forward network; gated ones have three matrices, plain ones two."""

    intermediate_size: int
    is_gated: bool = True
    has_bias: bool = False
    has_output_bias: bool = False  # after the last matrix alone
    is_whole: bool = False  # the engine does not split it over ranks
    splits_tokens: bool = False  # whole where experts' ranks take different tokens; see `MoeMlp`

    @property
    def is_empty(self) -> bool:
        """Return that there is a network."""
        return False

    @property
    def routing(self) -> Routing | None:
        """Return that there are no experts."""
        return None

    @property
    def shape(self) -> NetworkShape:
        """Return one network that every token passes."""
        return NetworkShape(columns=gated_columns(self.intermediate_size, is_gated=self.is_gated))

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return gate and up projection fused, and down projection.

        Llama 3.1 8B (arXiv:2407.21783, table 3: width 4,096, 14,336 columns): 176 million parameters a layer.

        >>> layer = DenseMlp(intermediate_size=14_336)
        >>> sum(matrix.elements for matrix in layer.matrices(4_096, Layout(), "model.layers.0."))
        176160768
        """
        is_whole = self.is_whole or (self.splits_tokens and takes_own_tokens(layout))
        return network(
            self.intermediate_size // (1 if is_whole else layout.tensor_parallel_size),
            hidden_size,
            prefix + "mlp.",
            is_gated=self.is_gated,
            has_bias=self.has_bias,
            has_output_bias=self.has_output_bias,
        )

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the columns, of which a rank holds whole quantization blocks."""
        columns = Divisor(
            name="feed-forward columns", size=self.intermediate_size, fills_blocks=True, module="mlp.down_proj"
        )
        return (columns,)

    @property
    def live_elements(self) -> int:
        """Return gate, up and their product. [elements]."""
        return 3 * self.intermediate_size

    def workspace_elements(self, _hidden_size: int, _layout: Layout) -> int:
        """Return nothing: only experts share buffers. [elements]."""
        return 0

    @property
    def adapted_matrices(self) -> tuple[str, ...] | None:
        """Return all of them; gate and up projection are fused under the first one's name."""
        return ("gate_proj", "up_proj", "down_proj")

    @property
    def active_columns(self) -> int:
        """Return all columns."""
        return self.intermediate_size


def takes_own_tokens(layout: Layout) -> bool:
    """Return whether ranks that share attention take different tokens to whole experts.

    Source: vLLM 0.33 `use_sequence_parallel_moe`.
    """
    return layout.expert_parallel and layout.data_parallel_size > 1


def network(
    columns: int,
    hidden_size: int,
    prefix: str,
    *,
    is_gated: bool,
    has_bias: bool = False,
    has_output_bias: bool = False,
) -> list[Matrix]:
    """Return the matrices of one network of so many columns on a rank."""
    parts = 2 if is_gated else 1
    return [
        Matrix(
            module=prefix + ("gate_proj" if is_gated else "up_proj"),
            rows=parts * columns,
            columns=hidden_size,
            parts=parts,
            biases=parts * columns if has_bias else 0,
        ),
        Matrix(
            module=prefix + "down_proj",
            rows=hidden_size,
            columns=columns,
            biases=hidden_size if has_bias or has_output_bias else 0,
        ),
    ]
