"""State-space mixers: Mamba with a diagonal state, Mamba 2 with one matrix state per head.

    Mamba    (k - 1 + state) x channels / tp x b
    Mamba 2  (k - 1 + drafted) x (channels + 2 x groups x state) / tp x b  +  heads / tp x head width x state x s

with k the convolution's kernel, b and s the bytes of an element of the model and of the state. A single
group is repeated, so that every rank has the one its heads read; several divide over the ranks.

Sources:
    A. Gu, T. Dao, Mamba (arXiv:2312.00752); T. Dao, A. Gu, Transformers are SSMs (arXiv:2405.21060);
    vLLM 0.33 `model_executor/layers/mamba/mamba_utils.py` (`mamba1_state_shape`, `mamba2_state_shape`,
    `extra_groups_for_head_shards`), `mamba_mixer.py`, `mamba_mixer2.py`.
"""

from dataclasses import dataclass

from service.engine.formats.matrix import Matrix, single, vector
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, LiveElements
from service.engine.layers.cache import Checkpoint, Sharding
from service.engine.layers.recurrent import RecurrentMixer


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba2(RecurrentMixer):
    """State-space mixer with one matrix state per head (Nemotron-H, Granite 4, Bamba)."""

    num_heads: int
    head_dim: int
    state_size: int
    num_groups: int
    conv_kernel_size: int
    state_dtype: str
    has_bias: bool = False
    has_conv_bias: bool = True
    has_norm: bool = True

    @property
    def channels(self) -> int:
        """Return the elements that all heads work on."""
        return self.num_heads * self.head_dim

    def convolved(self, tensor_parallel_size: int) -> int:
        """Return the channels that the convolution sees over all ranks: the heads', and B and C of each group."""
        groups = self.num_groups if self.num_groups % tensor_parallel_size == 0 else tensor_parallel_size
        return self.channels + 2 * groups * self.state_size

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the convolution's last inputs, and one matrix for each head. [bytes].

        Mamba-Codestral-7B (the defaults of Hugging Face's Mamba2Config): vLLM 0.33 itself computes a page of
        2,158,592 bytes.

        >>> layer = Mamba2(
        ...     num_heads=128, head_dim=64, state_size=128, num_groups=8, conv_kernel_size=4, state_dtype="auto"
        ... )
        >>> layer.state_bytes(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
        2158592
        """
        tp = sharding.tensor_parallel_size
        inputs = self.conv_kernel_size - 1 + sharding.num_speculative_tokens
        matrix = self.num_heads // tp * self.head_dim * self.state_size
        convolution = inputs * (self.convolved(tp) // tp) * sharding.state_element_bytes
        return convolution + matrix * sharding.matrix_element_bytes(self.state_dtype)

    @property
    def keeps_every_state(self) -> bool:
        """Return true: vLLM up to 0.27 `models/interfaces.py` (`SupportsMambaPrefixCaching`)."""
        return True

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return that prefill can keep a state after any token."""
        return Checkpoint(kernel="mamba2", tokens=1)

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return one projection of gate, inputs, B, C and time steps, the convolution, and the output."""
        prefix, tp = prefix + "mixer.", layout.tensor_parallel_size
        width, heads, convolved = self.channels // tp, self.num_heads // tp, self.convolved(tp) // tp
        in_rows = width + convolved + heads
        return [
            Matrix(
                module=prefix + "in_proj", rows=in_rows, columns=hidden_size, biases=in_rows if self.has_bias else 0
            ),
            _convolution(prefix, convolved, self.conv_kernel_size, has_bias=self.has_conv_bias),
            vector(prefix + "norm_and_skip", (width if self.has_norm else 0) + 2 * heads),
            single(prefix + "A", heads),
            _output(prefix, hidden_size, width, has_bias=self.has_bias),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the heads, and the groups where there are several.

        Source:
            vLLM 0.10.2 to 0.33 `model_executor/layers/mamba/mamba_mixer2.py` ("If tensor parallel world size does not
            divide num_groups, then num_groups must equal 1."); SGLang 0.5.23 `layers/attention/mamba/mamba.py`.
        """
        groups = Divisor(name="state-space groups", size=self.num_groups)
        return (Divisor(name="state-space heads", size=self.num_heads), *((groups,) if self.num_groups > 1 else ()))

    def live(self, tensor_parallel_size: int) -> LiveElements:
        """Return the projection, the output, and two copies of what is convolved, which the profiling run holds.

        Source:
            vLLM 0.33 `model_executor/layers/mamba/mamba_mixer2.py` (`forward`, `conv_ssm_forward` without metadata).
        """
        projected = self.channels + self.convolved(tensor_parallel_size) + self.num_heads
        return LiveElements(per_token=projected + self.channels + 2 * self.convolved(tensor_parallel_size))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mamba1(RecurrentMixer):
    """State-space mixer with a diagonal state (Mamba, Jamba)."""

    intermediate_size: int
    state_size: int
    conv_kernel_size: int
    time_step_rank: int
    has_bias: bool = False
    has_conv_bias: bool = True
    norm_elements: int = 0  # norms on time step, B and C, as Jamba has

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the convolution's last inputs and the state of each channel. [bytes].

        Mamba 130M (the defaults of Hugging Face's MambaConfig): vLLM 0.33 itself computes a page of 58,368 bytes.

        >>> layer = Mamba1(intermediate_size=1_536, state_size=16, conv_kernel_size=4, time_step_rank=48)
        >>> layer.state_bytes(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
        58368
        """
        width = self.intermediate_size // sharding.tensor_parallel_size
        inputs = (self.conv_kernel_size - 1) * sharding.state_element_bytes
        return width * (inputs + self.state_size * sharding.matrix_element_bytes("auto"))

    @property
    def keeps_every_state(self) -> bool:
        """Return true: vLLM up to 0.27 `models/interfaces.py` (`SupportsMambaPrefixCaching`)."""
        return True

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return that prefill exports no states."""
        return None

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return projections of inputs and gate, of time step, B and C, the convolution, and the output."""
        prefix, width = prefix + "mixer.", self.intermediate_size // layout.tensor_parallel_size
        rank = self.time_step_rank
        return [
            Matrix(
                module=prefix + "in_proj",
                rows=2 * width,
                columns=hidden_size,
                biases=2 * width if self.has_bias else 0,
            ),
            _convolution(prefix, width, self.conv_kernel_size, has_bias=self.has_conv_bias),
            Matrix(module=prefix + "x_proj", rows=rank + 2 * self.state_size, columns=width),
            Matrix(module=prefix + "dt_proj", rows=width, columns=rank, biases=width, is_linear=False),
            single(prefix + "A", width * self.state_size),
            vector(prefix + "D", width),
            vector(prefix + "norms", self.norm_elements),
            _output(prefix, hidden_size, width, has_bias=self.has_bias),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the channels."""
        return (Divisor(name="state-space channels", size=self.intermediate_size),)

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return inputs and gate, and a copy of the inputs, which the profiling run holds.

        Source:
            vLLM 0.33 `model_executor/layers/mamba/mamba_mixer.py` (`forward_impl` without metadata).
        """
        return LiveElements(per_token=3 * self.intermediate_size)


def _convolution(prefix: str, channels: int, kernel_size: int, *, has_bias: bool) -> Matrix:
    biases = channels if has_bias else 0
    return Matrix(module=prefix + "conv1d", rows=channels, columns=kernel_size, is_linear=False, biases=biases)


def _output(prefix: str, hidden_size: int, width: int, *, has_bias: bool) -> Matrix:
    biases = hidden_size if has_bias else 0
    return Matrix(module=prefix + "out_proj", rows=hidden_size, columns=width, biases=biases)
