"""What runs beside the residual stream: copies of it, and connections that mix several.

    alternating updates  n^2 + n^3 + n x hidden coefficients a layer, a low-rank residual, 2 (n - 1) projections
    hyper-connections    2 x (rows x n x hidden + rows + 2 + mixes) in fp32 a layer, rows = (2 + n x mixes) x n
    gated connections    2 x (norm + (rank + n, padded to 16) x n x hidden + n x hidden x rank) a layer

with n streams, and norms as wide as all of them.

Sources:
    C. Baykal et al., Alternating updates for efficient transformers (arXiv:2301.13310); D. Zhu et al.,
    Hyper-connections (arXiv:2409.19606); vLLM 0.33 `model_executor/models/gemma3n.py`, `models/deepseek_v4/`,
    `models/qwen4_exp/nvidia/hyperconnection.py` (`GatedResidual`).
"""

from dataclasses import dataclass
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.formats.matrix import PADDING, Matrix, single, vector

ROW_ALIGNMENT: Final = 16  # to which projections of gated connections are padded [rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlternatingUpdates:
    """Copies of the stream, of which a layer computes one, and a low-rank residual beside it (Gemma 3n)."""

    num_streams: int
    residual_rank: int

    def layer_matrices(self, hidden_size: int, tensor_parallel_size: int, prefix: str) -> list[Matrix]:
        """Return the coefficients that predict and correct the copies of the stream, and the low-rank residual."""
        streams, rank = self.num_streams, self.residual_rank // tensor_parallel_size
        coefficients = streams**2 + streams**3 + streams * hidden_size
        return [
            vector(prefix + "altup", coefficients + hidden_size),
            single(prefix + "altup.correct_output_scale", hidden_size),
            Matrix(module=prefix + "laurel.linear_left", rows=rank, columns=hidden_size),
            Matrix(module=prefix + "laurel.linear_right", rows=hidden_size, columns=rank),
            vector(prefix + "laurel.post_laurel_norm", hidden_size),
        ]

    def model_matrices(self, hidden_size: int, tensor_parallel_size: int) -> list[Matrix]:
        """Return the projections that make the copies of the stream, and join them."""
        rows, count = hidden_size // tensor_parallel_size, 2 * (self.num_streams - 1)
        return [Matrix(module="model.altup_projections", rows=rows, columns=hidden_size, count=count)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedConnections:
    """Streams that low-rank gates mix before each part of a layer, and into which its output is weighed.

    In the place of norms; whole on every rank, and never quantized (Qwen 3.8 Flash Next).
    """

    num_streams: int
    rank: int

    def layer_matrices(self, hidden_size: int, prefix: str) -> list[Matrix]:
        """Return the connections before the mixer and before the feed-forward part.

        Qwen3.8-Flash-Next: 324 rows of 10,240, which are padded to 336.

        >>> down, _, _, padding, *_ = GatedConnections(num_streams=4, rank=320).layer_matrices(2_560, "model.layers.0.")
        >>> down.rows, padding.elements // 10_240
        (324, 12)
        """
        rows, width = self.rank + self.num_streams, self.num_streams * hidden_size
        padded = (round_up(rows, ROW_ALIGNMENT) - rows) * width
        parts = (prefix + "attn_hyper_connection", prefix + "mlp_hyper_connection")
        return [
            matrix
            for part in parts
            for matrix in (*self._matrices(hidden_size, part, rows), vector(f"{part}.{PADDING}", padded))
        ]

    def joining_matrices(self, hidden_size: int, module: str) -> list[Matrix]:
        """Return the connection that makes one stream of several, before an output head."""
        return self._matrices(hidden_size, module, self.rank)

    def _matrices(self, hidden_size: int, module: str, rows: int) -> list[Matrix]:
        width = self.num_streams * hidden_size
        return [
            Matrix(module=module + ".down", rows=rows, columns=width, is_kept=True),
            Matrix(module=module + ".up", rows=width, columns=self.rank, is_kept=True),
            vector(module + ".norm", width),
        ]


def hyper_connections(streams: int, hidden_size: int, prefix: str, *, mixes_streams: bool) -> Matrix:
    """Return the fp32 weights that mix residual streams before and after a layer's two parts.

    >>> hyper_connections(4, 4_096, "model.layers.0.", mixes_streams=True).rows
    786486
    """
    rows = (2 + streams * mixes_streams) * streams
    elements = 2 * (rows * streams * hidden_size + rows + 2 + mixes_streams)
    return single(prefix + "hc", elements if streams > 1 else 0)


def stream_joiner(streams: int, hidden_size: int, module: str) -> Matrix:
    """Return the fp32 weights that make one stream of several, before an output head.

    >>> stream_joiner(4, 4_096, "model.hc_head").rows
    65541
    """
    return single(module, streams * streams * hidden_size + streams + 1 if streams > 1 else 0)
