"""Gated short convolution (LFM2): a state of the last few inputs.

    state = (k - 1 + drafted) x channels / tp x b

with k the kernel and b the bytes of an element of the model.

Sources:
    Liquid AI, LFM2 technical report (arXiv:2511.23404); vLLM 0.33 `model_executor/layers/mamba/short_conv.py`,
    `mamba_utils.py` (`short_conv_state_shape`).
"""

from dataclasses import dataclass

from service.engine.formats.matrix import Matrix
from service.engine.inputs import Layout
from service.engine.layers.base import Divisor, LiveElements
from service.engine.layers.cache import Checkpoint, Sharding
from service.engine.layers.recurrent import RecurrentMixer


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortConvolution(RecurrentMixer):
    """Gated short convolution (LFM2): its state is the last few inputs."""

    hidden_size: int
    conv_kernel_size: int
    has_bias: bool = False

    def state_bytes(self, sharding: Sharding) -> int:
        """Return the last inputs. [bytes].

        LFM2-1.2B (huggingface.co/LiquidAI/LFM2-1.2B: width 2,048, `conv_L_cache` 3): two inputs.

        >>> layer = ShortConvolution(hidden_size=2_048, conv_kernel_size=3)
        >>> layer.state_bytes(Sharding(tensor_parallel_size=1, cache_element_bytes=2, model_element_bytes=2))
        8192
        """
        inputs = self.conv_kernel_size - 1 + sharding.num_speculative_tokens
        return inputs * (self.hidden_size // sharding.tensor_parallel_size) * sharding.state_element_bytes

    @property
    def checkpoint(self) -> Checkpoint | None:
        """Return that prefill exports no states."""
        return None

    def matrices(self, hidden_size: int, layout: Layout, prefix: str) -> list[Matrix]:
        """Return one projection of the input and both gates, the convolution, and the output."""
        prefix, width = prefix + "conv.", self.hidden_size // layout.tensor_parallel_size
        biases = 3 * width if self.has_bias else 0
        return [
            Matrix(module=prefix + "in_proj", rows=3 * width, columns=hidden_size, biases=biases),
            Matrix(module=prefix + "conv", rows=width, columns=self.conv_kernel_size, is_linear=False),
            Matrix(
                module=prefix + "out_proj",
                rows=hidden_size,
                columns=width,
                biases=hidden_size if self.has_bias else 0,
            ),
        ]

    @property
    def divisors(self) -> tuple[Divisor, ...]:
        """Return the channels."""
        return (Divisor(name="convolution channels", size=self.hidden_size),)

    def live(self, _tensor_parallel_size: int) -> LiveElements:
        """Return the input and both gates, and the gated input before and after, which the profiling run holds.

        Source:
            vLLM 0.33 `model_executor/layers/mamba/short_conv.py` (`forward_cuda` without metadata).
        """
        return LiveElements(per_token=5 * self.hidden_size)
