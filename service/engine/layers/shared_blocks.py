"""Transformer blocks that many layers run in turn, each use with adapters of its own (Zamba 2).

    block   = 3 x width^2 + width x hidden + 3 x hidden x columns + norms
    adapter = rank x (inputs + outputs), for each use and adapted matrix

Sources:
    P. Glorioso et al., The Zamba2 suite (arXiv:2411.15242); vLLM 0.33 `model_executor/models/zamba2.py`.
"""

from dataclasses import dataclass, replace

from service.engine.formats.matrix import Matrix, vector
from service.engine.layers.dense import network

PREFIX = "model.shared_transformer."


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedBlocks:
    """A few transformer blocks that many layers run in turn, each use with adapters of its own (Zamba 2)."""

    num_blocks: int
    num_uses: int
    attention_width: int  # of the stream beside the embeddings
    intermediate_size: int
    adapter_rank: int
    adapts_attention: bool

    def matrices(self, hidden_size: int, tensor_parallel_size: int) -> list[Matrix]:
        """Return the blocks once each, and the low-rank adapters of every use."""
        tp, width = tensor_parallel_size, self.attention_width
        columns = self.intermediate_size // tp
        blocks = [
            Matrix(module=PREFIX + "qkv_proj", rows=3 * width // tp, columns=width, parts=3),
            Matrix(module=PREFIX + "o_proj", rows=hidden_size, columns=width // tp),
            *network(columns, hidden_size, PREFIX + "feed_forward.", is_gated=True),
            vector(PREFIX + "norms", width + hidden_size),
        ]
        adapted = [(hidden_size, 2 * columns)] + [(width, width // tp)] * (3 if self.adapts_attention else 0)
        return [replace(matrix, count=self.num_blocks) for matrix in blocks] + [
            Matrix(module=PREFIX + "adapters", rows=rows, columns=inputs, count=self.num_uses)
            for from_width, to_width in adapted
            for rows, inputs in ((self.adapter_rank // tp, from_width), (to_width, self.adapter_rank))
        ]
