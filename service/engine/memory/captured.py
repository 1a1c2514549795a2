"""Which batches an engine captures as graphs when it starts."""

from dataclasses import dataclass
from typing import Final

from service.engine.engines.device import Device
from service.engine.inputs import EngineSettings

# What graphs take is told of the largest batch that most versions capture. [tokens]
LARGEST_GRAPH_BATCH: Final = 512
SPARE: Final = 2  # times as many tokens as requests have in one step
BLACKWELL: Final = 10  # of servers: compute capability 10.0 and 10.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Captures:
    """Which batches are captured, under any batch limits."""

    most_tokens: int
    tokens_of_each: int  # of a request in one step; 0 where requests do not count

    def largest(self, tokens: int, seqs: int) -> int:
        """Return the tokens of the largest batch that is captured as a graph. [tokens].

            largest = min(2 x max_num_seqs x tokens of each, most, max_num_batched_tokens)

        vLLM 0.11.1 `config/vllm.py`: "min(max_num_seqs*2, 512)".

        >>> Captures(most_tokens=512, tokens_of_each=1).largest(8_192, 100)
        200
        """
        wanted = SPARE * seqs * self.tokens_of_each if self.tokens_of_each else self.most_tokens
        return min(wanted, self.most_tokens, tokens)


def captures_of(settings: EngineSettings, device: Device) -> Captures:
    """Return which batches a version captures on a GPU.

    Source:
        vLLM `config/vllm.py`, formerly `config.py` (`_set_cudagraph_sizes`) of 39 releases, 0.8.0 to 0.33.0.
    """
    rules = device.plan
    most = rules.most_captured_on_blackwell if device.generation == BLACKWELL else LARGEST_GRAPH_BATCH
    each = 1 + settings.num_speculative_tokens if rules.captures_drafts else 1
    return Captures(most_tokens=most, tokens_of_each=each if rules.captures_by_requests else 0)
