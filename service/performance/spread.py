"""Caches whose tokens lie on several ranks: what decoding exchanges between these ranks, beside the same step without.

Each rank attends with the queries of all ranks to its share of the tokens. So queries are gathered, then logarithms of
sums, and outputs are scattered, in each layer:

    sent      = (n - 1) x requests x heads of a rank x (width of a query + width of an output) x 2          [bytes]
    seconds   = layers x 3 x latency + sent / rate

What a rank saves by reading a share of the tokens alone is not counted, as its kernels were measured with fewer heads.

Source:
    vLLM 0.33 `v1/attention/ops/dcp.py` (cp_lse_ag_out_rs).
"""

from dataclasses import replace
from typing import Final

from service.engine.inputs import Gpu, Layout
from service.engine.time.records import REQUESTS
from service.performance.links import slowest_link
from service.performance.nodes import gathered_s
from service.performance.tables import StepTables
from service.performance.workload import Workload

COLLECTIVES: Final = 3  # of queries, of logarithms of sums, of outputs
REACHED: Final = 0.75  # NCCL's all-gather among eight H100: 340 GB/s of 450 (github.com/NVIDIA/nccl/issues/1218)


def with_spread(tables: StepTables, workload: Workload, gpu: Gpu, layout: Layout) -> StepTables:
    """Return the step times of a layout whose caches are spread, from those of the same one without.

    Args:
        tables: without.
        workload: of one rank.
        gpu: whose links.
        layout: over how many ranks.
    """
    ranks = layout.decode_context_parallel_size
    if ranks == 1:
        return tables
    waited = workload.num_layers * COLLECTIVES * gathered_s(gpu, ranks)
    # Two bytes an element, and two FLOP an element for each token that a query attends to.
    sent = (ranks - 1) * sum(mixer.decode_flop_per_pair for mixer in workload.mixers)
    once = sent / (REACHED * slowest_link(gpu, ranks))
    return replace(
        tables,
        decode=tuple(
            tuple(time + waited + requests * once for time in row)
            for requests, row in zip(REQUESTS, tables.decode, strict=True)
        ),
        tokens=tuple(time + waited for time in tables.tokens),
    )
