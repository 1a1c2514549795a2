"""Tables of a vocabulary: rows padded and dealt out over ranks, and a second one that every layer reads.

    rows of a rank = ceil(vocabulary rounded up to 64 / tp)

Sources:
    vLLM 0.33 `model_executor/layers/vocab_parallel_embedding.py` (`DEFAULT_VOCAB_PADDING_SIZE`),
    `model_executor/models/gemma3n.py`, `gemma4.py`.
"""

from dataclasses import dataclass
from typing import Final

from service.engine.arithmetic import ceil_div, round_up
from service.engine.formats.matrix import Matrix, vector

# Embedding tables are padded so that they divide over most numbers of ranks (vLLM DEFAULT_VOCAB_PADDING_SIZE).
VOCABULARY_PADDING: Final = 64


def padded_vocabulary(vocab_size: int) -> int:
    """Return the rows of a whole table: a multiple of 64.

    >>> padded_vocabulary(50_257)
    50304
    """
    return round_up(vocab_size, VOCABULARY_PADDING)


def vocabulary_rows(vocab_size: int, tensor_parallel_size: int) -> int:
    """Return the rows of an embedding table or output head on one rank.

    Rounded up where an engine pads further, to a multiple of its ranks; vLLM does not start there.

    GPT-2's 50,257 tokens become 50,304.

    >>> vocabulary_rows(50_257, 1), vocabulary_rows(50_257, 2)
    (50304, 25152)
    """
    return ceil_div(padded_vocabulary(vocab_size), tensor_parallel_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class PerLayerEmbeddings:
    """A second, narrow embedding for every layer, gated into the stream (Gemma 3n, small Gemma 4)."""

    vocab_size: int
    width: int

    def layer_matrices(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return how one layer takes its own embedding in, whole on every rank."""
        return [
            Matrix(module=prefix + "per_layer_input_gate", rows=self.width, columns=hidden_size),
            Matrix(module=prefix + "per_layer_projection", rows=hidden_size, columns=self.width),
            vector(prefix + "post_per_layer_input_norm", hidden_size),
        ]

    def model_matrices(self, hidden_size: int, num_layers: int, tensor_parallel_size: int) -> list[Matrix]:
        """Return the table of all layers, and what projects the model's own embedding to its width."""
        rows, width = vocabulary_rows(self.vocab_size, tensor_parallel_size), num_layers * self.width
        return [
            Matrix(module="model.embed_tokens_per_layer", rows=rows, columns=width, is_linear=False),
            Matrix(module="model.per_layer_model_projection", rows=width // tensor_parallel_size, columns=hidden_size),
            vector("model.per_layer_projection_norm", self.width),
        ]
