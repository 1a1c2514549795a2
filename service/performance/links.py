"""What joins ranks, and how long all-reduces take over it: fabrics as kernels were measured, PCIe as was published.

Over PCIe no kernel of an engine's own runs among more than two ranks. NCCL passes every message around a ring, small
ones with a flag in every word, large ones in blocks: latencies go with the ranks, the rate is a share of the link's.

    seconds = min(small x n + 2 x sent / rate, large x n + sent / rate)
    sent    = 2 (n - 1) / n x bytes

Sources:
    P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms (2009): 2 (n - 1) / n x bytes per rank.
    vLLM `distributed/device_communicators/custom_all_reduce.py`: not used for more than two GPUs joined by PCIe alone.
    NCCL `src/graph/tuning.cc`: the faster of its protocols, latency x steps of the ring + bytes / bandwidth, which is
    half for LL ("busBw * .5").
"""

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from statistics import median
from typing import Any, Final

import numpy as np
import yaml
from numpy.typing import NDArray

from service.engine.inputs import Gpu
from service.performance.nodes import between_nodes

Floats = NDArray[np.float64]

PCIE_5_BYTES_PER_S: Final = 64e9  # x16, one direction
FLAGGED: Final = 2  # bytes on the link for each byte of a small message: four of data, four of flag
MEBIBYTE: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Pcie:
    """What all-reduces reach over PCIe."""

    fractions: tuple[tuple[int, float], ...]  # of the link's rate, among so many ranks at most
    small_s_per_rank: float  # latency of the smallest message
    large_s_per_rank: float  # of a message in blocks

    def seconds(self, sent_bytes: Floats, bytes_per_s: float, ranks: int) -> Floats:
        """Return the seconds of one all-reduce.

        Args:
            sent_bytes: of each rank, 2 (n - 1) / n of the message.
            bytes_per_s: one direction of the link.
            ranks: at least two.
        """
        rate = bytes_per_s * next((share for most, share in self.fractions if ranks <= most), self.fractions[-1][1])
        small = self.small_s_per_rank * ranks + FLAGGED * sent_bytes / rate
        return np.minimum(small, self.large_s_per_rank * ranks + sent_bytes / rate)


def joined_by_pcie(gpu: Gpu, ranks: int) -> bool:
    """Return whether so many ranks of one node lie beyond what a fabric joins."""
    return gpu.scale_up_domain_gpus < ranks <= gpu.gpus_per_node


def slowest_link(gpu: Gpu, ranks: int) -> float:
    """Return the rate between ranks: of their fabric, of PCIe within a node, of the network beyond it. [bytes / s].

    GPUs that a bridge joins in pairs or fours have PCIe 5.0 beside it.
    """
    if ranks <= gpu.scale_up_domain_gpus:
        return gpu.scale_up_bytes_per_s
    whole = gpu.scale_up_domain_gpus in (1, gpu.gpus_per_node) or gpu.scale_up_domain_gpus > gpu.gpus_per_node
    within = gpu.scale_up_bytes_per_s if whole else PCIE_5_BYTES_PER_S
    return between_nodes(gpu, within) if ranks > gpu.gpus_per_node else within


@lru_cache(maxsize=1)
def published_pcie() -> Pcie:
    """Return the medians of what was published of all-reduces over PCIe.

    >>> reached = published_pcie()
    >>> [(ranks, round(share, 1)) for ranks, share in reached.fractions]
    [(2, 0.6), (4, 0.4), (8, 0.4)]
    """
    rows = _file()["measured"]
    return Pcie(
        fractions=tuple(
            (ranks, median(_fraction(row) for row in rows if row["ranks"] == ranks))
            for ranks in sorted({row["ranks"] for row in rows})
        ),
        small_s_per_rank=median(row["smallest_s"] / row["ranks"] for row in rows if "smallest_s" in row),
        large_s_per_rank=median(_large_s(row) / row["ranks"] for row in rows if "mebibyte_s" in row),
    )


def sound_ranks(gpu: Gpu) -> int | None:
    """Return the most ranks whose kernels were measured over a link as fast as its kind; None for any number."""
    ranks: int | None = _file()["sound_ranks"].get(gpu.measured_as)
    return ranks


def _fraction(row: dict[str, Any]) -> float:
    return float(row["bus_bytes_per_s"] / row["link_bytes_per_s"])


def _large_s(row: dict[str, Any]) -> float:
    """Return what a message of 1 MiB takes beyond its bytes over the rate of large ones. [s]."""
    sent = 2 * (row["ranks"] - 1) / row["ranks"] * MEBIBYTE
    return float(row["mebibyte_s"] - sent / row["bus_bytes_per_s"])


@lru_cache(maxsize=1)
def _file() -> dict[str, Any]:
    text = files("service.performance").joinpath("data/pcie_all_reduces.yaml").read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=yaml.CSafeLoader)
    return document
