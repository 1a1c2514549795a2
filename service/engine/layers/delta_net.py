"""Linear attention with a decaying matrix state per value head: the gated delta rule, and lightning attention.

    state = (k - 1 + drafted) x (2 x keys + values) / tp x b  +  value heads / tp x value width x key width x s

with k the convolution's kernel, b and s the bytes of an element of the model and of the state.

Sources:
    S. Yang, J. Kautz, A. Hatamizadeh, Gated delta networks (arXiv:2412.06464);
    vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py` (`gated_delta_net_state_shape`),
    `model_executor/layers/mamba/gdn/`, `third_party/flash_linear_attention/ops/chunk.py`.
"""

from dataclasses import dataclass
from typing import Final

from service.engine.formats.matrix import Matrix, single, vector
from service.engine.inputs import NAMED_STATE_DTYPES, Layout, StateDtype
from service.engine.layers.base import Divisor, LiveElements
from service.engine.layers.cache import Checkpoint, Sharding
from service.engine.layers.recurrent import RecurrentMixer
from service.engine.layers.shapes import DeltaShape

CHUNK_TOKENS: Final = 64  # that the kernel takes at once, and after which it can export its state [tokens]


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedDeltaNet(RecurrentMixer):
    """Linear attention with a decaying matrix state per value head (Qwen3-Next, Qwen3.5, OLMo Hybrid).

    With a fixed decay it has no convolution either: lightning attention (Ring 2.5).
    """

    num_key_heads: int
    num_value_heads: int
    key_head_dim: int
    value_head_dim: int
    conv_kernel_size: int
    state_dtype: str  # element type of the matrix state; "auto" follows the model
    has_fixed_decay: bool = False
    num_norm_groups: int = 0  # of the output's norm; a rank needs one at least
    has_head_norms: bool = False  # on query and key
    has_narrow_decay: bool = False  # learnt decay in the model's dtype, not in fp32
    exports_states: bool = True  # prefill can keep states for prefix caching on the way

    @property
    def key_width(self) -> int:
        """Return the elements of all keys of one token."""
        return self.num_key_heads * self.key_head_dim

    @property
    def value_width(self) -> int:
        """Return the elements of all values of one token."""
        return self.num_value_heads * self.value_head_dim

    @property
    def chunks_states(self) -> bool:
        """Return that the kernel of prompts takes who decodes beside them, each as a chunk of its own."""
        return True

    @property
    def shape(self) -> DeltaShape | None:
        """Return its heads, unless it is lightning attention."""
        if self.has_fixed_decay:
            return None
        return DeltaShape(
            key_heads=self.num_key_heads,
            value_heads=self.num_value_heads,
            key_head_dim=self.key_head_dim,
            value_head_dim=self.value_head_dim,
            conv_kernel_size=self.conv_kernel_size,
            state_dtype=self.state_dtype,
        )

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the convolution's last inputs, and one matrix for each value head. [bytes].

        Qwen3-Next-80B-A3B: vLLM 0.33 itself computes pages of 1,179,648 bytes, which a block of 576 tokens
        just fills, since 1,097,728 bytes of state are more than 512 tokens of 2,048 bytes.

        >>> layer = GatedDeltaNet(
        ...     num_key_heads=16, num_value_heads=32, key_head_dim=128, value_head_dim=128, conv_kernel_size=4,
        ...     state_dtype="auto",
        ... )
        >>> layer.state_bytes(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
        1097728
        """
        tp, own = sharding.tensor_parallel_size, sharding.state_element_bytes
        inputs = self.conv_kernel_size - 1 + sharding.num_speculative_tokens
        convolution = inputs * ((2 * self.key_width + self.value_width) // tp) * own
        matrix = self.num_value_heads // tp * self.value_head_dim * self.key_head_dim
        return convolution + matrix * sharding.matrix_element_bytes(self.state_dtype)

    @property
    def state_matrix_dtypes(self) -> tuple[StateDtype, ...]:
        """Return none of lightning attention, whose state is one matrix and goes by the dtype of the whole.

        Source: vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py` (`linear_attention_state_dtype`).
        """
        return () if self.has_fixed_decay else NAMED_STATE_DTYPES

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return the kernel's chunk, where it exports states."""
        if not self.exports_states:
            return None
        return Checkpoint(kernel="delta", tokens=CHUNK_TOKENS, key_width=self.key_head_dim)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return one projection of queries, keys, values and gate, and what steers the decay."""
        prefix, tp = prefix + "linear_attn.", layout.tensor_parallel_size
        key, value = self.key_width // tp, self.value_width // tp
        matrices = [
            Matrix(module=prefix + "in_proj_qkv", rows=2 * key + 2 * value, columns=hidden_size, parts=4),
            vector(prefix + "head_norms", 2 * self.key_head_dim if self.has_head_norms else 0),
            Matrix(module=prefix + "out_proj", rows=hidden_size, columns=value),
        ]
        if self.has_fixed_decay:
            return [*matrices, vector(prefix + "norm", value)]
        heads = self.num_value_heads // tp
        return [
            *matrices,
            Matrix(module=prefix + "in_proj_b", rows=2 * heads, columns=hidden_size, parts=2),
            Matrix(module=prefix + "conv1d", rows=2 * key + value, columns=self.conv_kernel_size, is_linear=False),
            vector(prefix + "dt_bias", heads),
            (vector if self.has_narrow_decay else single)(prefix + "A_log", heads),
            vector(prefix + "norm", self.value_head_dim),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return heads of keys and of values, and the groups of the output's norm."""
        groups = Divisor(name="groups of the linear norm", size=self.num_norm_groups)
        return (
            Divisor(name="linear key heads", size=self.num_key_heads),
            Divisor(name="linear value heads", size=self.num_value_heads),
            *((groups,) if self.num_norm_groups else ()),
        )

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return what the chunk-wise kernel holds per token. [elements].

        The projection with its gate; query, key and value after the convolution, and again normalized;
        w, u, the corrected and the output values; and a matrix state of each value head for every chunk.

        Source:
            vLLM 0.33 `third_party/flash_linear_attention/ops/chunk.py` (`chunk_gated_delta_rule_fwd`).
        """
        states = self.value_width * self.key_head_dim // CHUNK_TOKENS
        corrections = self.num_value_heads * self.key_head_dim
        return LiveElements(per_token=6 * self.key_width + 7 * self.value_width + corrections + states)
