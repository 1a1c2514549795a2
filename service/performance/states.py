"""States of Mamba layers, which tables of measured kernels leave out: each request's is read and written anew.

    seconds of a request = bytes of its states / (bandwidth x 0.77), or x 0.59 by a rule of thumb

A kernel takes so many rows at once as a rule of thumb says, or as was found to be fastest on a GPU.

Sources:
    vLLM pull request 44251, of June 2026, prints for states of 64 x 128 in 32 bits on H200: 8,192 of them take 188.2 us
    by the rule and 142.7 tuned, 4,096 take 94.8 and 73.6; 65,536 bytes each are 112 and 56 us of its bandwidth. Pull
    request 43083 has 104.5 us on H100 for 8,192 in 16 bits, tuned, which are 80.
    Of Nemotron Nano 12B v2 on H100, tables tell 3.4 us for each of 1,024 requests beyond what as many tokens of prompts
    take, where its states are 89 us of the bandwidth. By the rule of thumb they explain all that ML.ENERGY's 30 runs of
    Mamba layers on H100 take beyond tables: 61 us for each request were fitted to them before, and 0 with it.
"""

from typing import Final

from service.engine.time.steps import Deployed

TUNED_FRACTION: Final = 0.77
UNTUNED_FRACTION: Final = 0.59


def untabled_states(key: Deployed) -> float:
    """Return what states take that tables leave out, over their bytes at the full bandwidth; 0 of other models."""
    if not any(mixer.is_recurrent and not mixer.chunks_states for mixer in key.model.architecture.mixers):
        return 0.0
    return 1 / (TUNED_FRACTION if key.rules.plan.tunes_states else UNTUNED_FRACTION)
