"""Kernels whose ranks send the tokens of whole experts by DeepEP: constants of their own, and how far they are off.

The kernels of experts, of DeepEP over one to eight servers, and of latent attention were measured each by itself
(aiconfigurator-core 0.12), with experts balanced. They hold without factors that were fitted on the engine's own
exchange; what the host does for each step is 2 ms more.

Published without overlapped batches, of which these times are, and what is said here:

    H200, 16 ranks, 2 requests each at 65,536 tokens    60.4 tokens/s a rank      62.1    (LMSYS, July 2025, MTP)
    H100, 72 ranks, 256 requests each at 2,000 tokens   17,777 tokens/s a server  17,046  (LMSYS, May 2025; 64 ranks)
    GB200, 48 ranks, 2,000 tokens                       7,583 tokens/s a GPU      8,608 of 32, 6,677 of 64
    H100, 32 ranks, prompts of 1,024 tokens             41,050 tokens/s a server  43,380  (the same)

Sources:
    lmsys.org/blog/2025-05-05-large-scale-ep (22,310 tokens/s with overlapped batches, 1.255 times as many; 57,674
    tokens of prompts, up to 1.405 times as many); lmsys.org/blog/2025-07-17-mtp;
    lmsys.org/blog/2025-06-16-gb200-part-1.
"""

from typing import Final

from service.performance.fitted import Row

STEP_OVERHEAD_S: Final = 0.002
# As far as published pools whose batches overlap are ahead, which most of those in production do.
EXPECTED_ERROR: Final = 0.3


def exchanged(row: Row) -> Row:
    """Return the constants of such kernels: a row's own for requests, none for kernels.

    Args:
        row: of the engine's own exchange.
    """
    own = {"decode_factor": 1.0, "small_prefill_factor": 1.0, "large_prefill_factor": 1.0}
    factors = row.factors.model_copy(update={**own, "step_overhead_s": STEP_OVERHEAD_S})
    errors = {"expected_error_fraction": EXPECTED_ERROR, "pace_error_fraction": EXPECTED_ERROR}
    return row.model_copy(update={**errors, "factors": factors})
