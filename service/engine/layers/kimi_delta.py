"""Linear attention whose matrix state decays per channel: Kimi delta attention.

    state = (k - 1 + drafted) x 3 x width / tp x b  +  width / tp x head width x 4

with width = heads x head width, k the convolution's kernel and b the bytes of an element of the model.

Sources:
    Kimi Team, Kimi Linear (arXiv:2510.26692); vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py`
    (`kda_state_shape`), `model_executor/layers/mamba/gdn/kimi_gdn_linear_attn.py`, `models/kimi_k3/`.
"""

from dataclasses import dataclass
from typing import Final

from service.engine.arithmetic import round_up
from service.engine.formats.elements import SINGLE_BYTES, dtype_bytes
from service.engine.formats.matrix import Matrix, as_kept, single, vector
from service.engine.inputs import Layout, StateDtype
from service.engine.layers.base import Divisor, LiveElements
from service.engine.layers.cache import Checkpoint, Sharding
from service.engine.layers.recurrent import RecurrentMixer

FLASH_KDA_CHECKPOINT_TOKENS: Final = 16  # chunk on which the FlashKDA kernel of Kimi K3 can export its state [tokens]
# Rows of Kimi K3's fused projection are padded to a multiple of this on each rank.
ROW_ALIGNMENT: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class KimiDeltaAttention(RecurrentMixer):
    """Linear attention whose matrix state decays per channel (Kimi Linear, Kimi K3)."""

    num_heads: int
    head_dim: int
    conv_kernel_size: int
    has_full_rank_gate: bool = False  # output gate of full width (Kimi K3), not of one head's
    fuses_narrow_gate: bool = (
        False  # the output gate's narrow projection stands in the fused one, and is kept (GLM 5.3)
    )
    has_full_rank_decay: bool = False  # decay and output gate of full width, in projections of their own (Ling 3)

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the convolutions' last inputs of query, key and value, and one fp32 matrix for each head. [bytes].

        Kimi-Linear-48B-A3B (32 heads of 128, kernel 4): 2 MiB of matrices and 72 KiB of inputs in bf16.

        >>> layer = KimiDeltaAttention(num_heads=32, head_dim=128, conv_kernel_size=4)
        >>> layer.state_bytes(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
        2170880
        """
        width = self.num_heads // sharding.tensor_parallel_size * self.head_dim
        inputs = self.conv_kernel_size - 1 + sharding.num_speculative_tokens
        matrix = width * self.head_dim * dtype_bytes(sharding.matrix_dtype, SINGLE_BYTES)
        return inputs * 3 * width * sharding.state_element_bytes + matrix

    @property
    def state_matrix_dtypes(self) -> tuple[StateDtype, ...]:
        """Return what Kimi K3 and GLM 5.3 take; Kimi Linear keeps fp32 whatever is stated.

        Source: vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py` (`kda_state_dtype`: "supports only auto,
        float32, and bfloat16"), `gdn/kimi_gdn_linear_attn.py` (`get_state_dtype`), `models/kimi_k3/nvidia/kda.py`,
        `models/glm5next/common/kda.py`.
        """
        return ("float32", "bfloat16") if self._is_newer else ()

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return the chunk of the kernel of Kimi K3 and GLM 5.3; the older one exports no states."""
        if not self._is_newer:
            return None
        return Checkpoint(kernel="flash_kda", tokens=FLASH_KDA_CHECKPOINT_TOKENS, key_width=self.head_dim)

    @property
    def _is_newer(self) -> bool:
        return self.has_full_rank_gate or self.fuses_narrow_gate

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return one fused projection; decay and low-rank gate have one narrow projection, whole on every rank."""
        prefix, heads = prefix + "self_attn.", self.num_heads // layout.tensor_parallel_size
        width = heads * self.head_dim
        if self.has_full_rank_decay:
            return [*self._wide_projections(hidden_size, width, heads, prefix), *self._around(width, heads, prefix)]
        if self.fuses_narrow_gate:
            return as_kept(
                [*self._narrow_projections(hidden_size, width, heads, prefix), *self._around(width, heads, prefix)]
            )
        rows = (4 if self.has_full_rank_gate else 3) * width + self.head_dim + heads
        if self.has_full_rank_gate:
            rows = round_up(rows, ROW_ALIGNMENT)
        matrices = [
            Matrix(module=prefix + "in_proj_qkvgfab", rows=rows, columns=hidden_size, parts=6),
            Matrix(module=prefix + "f_b_proj", rows=width, columns=self.head_dim),
            *self._around(width, heads, prefix),
            Matrix(module=prefix + "o_proj", rows=hidden_size, columns=width),
        ]
        if not self.has_full_rank_gate:
            matrices += [
                Matrix(module=prefix + "g_a_proj", rows=self.head_dim, columns=hidden_size),
                Matrix(module=prefix + "g_b_proj", rows=width, columns=self.head_dim),
            ]
        return matrices

    def _narrow_projections(self, hidden_size: int, width: int, heads: int, prefix: str) -> list[Matrix]:
        """Return queries, keys, values, step sizes and both narrow projections fused, these whole on every rank.

        Source: vLLM 0.33 `models/glm5next/common/kda.py` (`Glm5NextLinearAttention`, built without quantization).
        """
        rows = 3 * width + heads + 2 * self.head_dim
        return [
            Matrix(module=prefix + "in_proj_qkvbfg_a", rows=rows, columns=hidden_size, parts=6),
            Matrix(module=prefix + "f_b_proj", rows=width, columns=self.head_dim),
            Matrix(module=prefix + "g_b_proj", rows=width, columns=self.head_dim),
            Matrix(module=prefix + "o_proj", rows=hidden_size, columns=width),
        ]

    @staticmethod
    def _wide_projections(hidden_size: int, width: int, heads: int, prefix: str) -> list[Matrix]:
        """Return queries, keys, values and step sizes fused; decay, output gate and output, each of full width.

        Source: vLLM 0.33 `model_executor/models/bailing_moe_v3.py` (`BailingMoeV3KimiDeltaAttention`).
        """
        return [
            Matrix(module=prefix + "qkvb_proj", rows=3 * width + heads, columns=hidden_size, parts=4),
            Matrix(module=prefix + "f_proj", rows=width, columns=hidden_size),
            Matrix(module=prefix + "g_proj", rows=width, columns=hidden_size),
            Matrix(module=prefix + "o_proj", rows=hidden_size, columns=width),
        ]

    def _around(self, width: int, heads: int, prefix: str) -> list[Matrix]:
        """Return convolutions, what steers the decay, and the output's norm."""
        return [
            single(prefix + "conv1d", 3 * width * self.conv_kernel_size),
            single(prefix + "dt_bias_and_decay", width + heads),
            vector(prefix + "o_norm", self.head_dim),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the heads."""
        return (Divisor(name="linear heads", size=self.num_heads),)

    def live(self, tensor_parallel_size: int) -> LiveElements:
        """Return the fused projection, the gate, the decay and the output, which the profiling run holds. [elements].

        It stops before the recurrence; what that needs later comes out of what the budget leaves.

        Source:
            vLLM 0.33 `model_executor/layers/mamba/gdn/kimi_gdn_linear_attn.py` (`forward`, `_forward` without
            metadata), `models/kimi_k3/nvidia/kda.py`.
        """
        narrow = self.head_dim * tensor_parallel_size  # the narrow decay is whole on every rank
        gates = self.num_heads + (self.num_heads * self.head_dim if self.has_full_rank_decay else narrow)
        return LiveElements(per_token=6 * self.num_heads * self.head_dim + gates)
