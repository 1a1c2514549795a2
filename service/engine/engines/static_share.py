"""SGLang's own share of a GPU for weights and cache, where nobody states one: what its rules reserve, by version.

    share    = round((memory - reserved) / memory, 3) x vision
    reserved = what a tier of memory states + a part for each rank
               + chunk tokens x c + captured batch x g + prompts captured                 at least 10 GiB above 60 GiB
               + what drafts, and copies of the attention, take
    vision   = 0.95 x clamp(1.1 - 0.1 x layers x width^2 / (24 x 1024^2), 0.8, 1.05)      of models that see images

Sources:
    SGLang `server_args.py` (`_handle_gpu_memory_settings`, `adjust_mem_fraction_for_vlm`) of 0.4.6 to 0.5.18, since
    0.5.19 `arg_groups/memory_hook.py`; which prompts are captured: `server_args.py`
    (`_handle_piecewise_cuda_graph`) of 0.5.10, since 0.5.20 `arg_groups/cuda_graph_hook.py`
    (`disable_breakable_cudagraph_if_incompatible`); pull request 10975.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from service.engine.arithmetic import GIB, MIB
from service.engine.layers.encoder import TOWER

# What keeps a version from capturing prompts as graphs.
PromptObstacle = Literal[
    "class", "drafts", "copies", "stages", "adapters", "images", "latents", "sparse", "other_vendors"
]
ALWAYS: Final[frozenset[PromptObstacle]] = frozenset({"class"})  # in all versions: which, is told of the class

LEAST_CHUNK: Final = 2_048  # tokens that are reserved for at least
LARGE_MEMORY: Final = 60 * GIB  # above which at least so much is reserved:
LEAST_OF_LARGE: Final = 10 * GIB
MANY_CAPTURED: Final = 300  # captured requests, above which copies of the attention take half as much again
FOUR_RANKS: Final = 4  # from which more batches are captured
PROMPT_BYTES: Final = 8 * MIB  # of each captured length of a prompt
LATENT_PROMPT_BYTES: Final = 1_536 * MIB  # of all of them, where layers keep latents
SHARES_BY_RANKS_UP_TO: Final = 80 * GIB
VISION_SHARE: Final = 0.95  # of a tower of the size that others are multiples of


@dataclass(frozen=True, slots=True, kw_only=True)
class ReserveTier:
    """What is reserved on GPUs with at least this memory, whatever runs, and how many requests are captured."""

    at_least_memory_bytes: int
    reserved_bytes: int
    bytes_per_rank: int
    captured: int  # requests of the largest graph, below four ranks
    captured_of_four: int  # from four ranks on


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticReserve:
    """One version's rules."""

    tiers: tuple[ReserveTier, ...]  # first match wins
    shares_by_ranks: Mapping[int, float] = field(default_factory=dict)  # from so many ranks on, up to 80 GiB
    bytes_per_chunk_token: int = 0
    bytes_per_captured: int = 0
    has_least: bool = False
    draft_bytes: int = 0
    ngram_draft_bytes: int = 0
    copies_bytes: int = 0  # of copies of the attention, however many
    bytes_per_copy_and_captured: int = 0
    sees_vision: bool = False
    caps_captured: bool = False  # at the requests that may run
    prompts_uncaptured_for: frozenset[PromptObstacle] | None = None  # None: prompts never are


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What runs on a GPU, as far as the reserve asks."""

    chunk_tokens: int
    running: int = 1 << 30  # requests at once
    tensor_ranks: int = 1  # of all copies of the attention together
    stages: int = 1
    attention_copies: int = 1
    drafts: Literal["none", "ngram", "own"] = "none"
    obstacles: frozenset[PromptObstacle] = frozenset()
    is_latent: bool = False
    tower: tuple[int, int] | None = None  # layers and width; None: it sees no images


def static_share(reserve: StaticReserve, memory_bytes: int, default: float, served: Served) -> float:
    """Return `mem_fraction_static` where nobody states it. [fraction].

        share = round((memory - reserved) / memory, 3) x vision

    Of an H100 with 81,559 MiB, chunks of 8,192 tokens and 256 captured requests, one rank and eight (512 captured):

    >>> tier = ReserveTier(
    ...     at_least_memory_bytes=60 * GIB, reserved_bytes=512 * MIB, bytes_per_rank=128 * MIB, captured=256,
    ...     captured_of_four=512)
    >>> reserve = StaticReserve(
    ...     tiers=(tier,), bytes_per_chunk_token=1_536 << 10, bytes_per_captured=2 * MIB, has_least=True)
    >>> [static_share(reserve, 81_559 * MIB, 0.88, Served(chunk_tokens=8_192, tensor_ranks=tp)) for tp in (1, 8)]
    [0.835, 0.818]

    Args:
        reserve: the version's rules.
        memory_bytes: of the GPU. [bytes]
        default: the share where no tier speaks. [fraction]
        served: what runs.
    """
    share = _share(reserve, memory_bytes, default, served)
    return round(share * _vision(served.tower), 6) if reserve.sees_vision and served.tower is not None else share


def _share(reserve: StaticReserve, memory_bytes: int, default: float, served: Served) -> float:
    tier = next((tier for tier in reserve.tiers if memory_bytes >= tier.at_least_memory_bytes), None)
    ranks = served.tensor_ranks * served.stages
    if tier is None:
        by_ranks = [share for least, share in reserve.shares_by_ranks.items() if ranks >= least]
        return min(by_ranks, default=default) if memory_bytes <= SHARES_BY_RANKS_UP_TO else default
    reserved = tier.reserved_bytes + tier.bytes_per_rank * ranks
    reserved += reserve.bytes_per_chunk_token * max(served.chunk_tokens, LEAST_CHUNK)
    reserved += _captured_bytes(reserve, tier, served)
    if reserve.has_least and memory_bytes > LARGE_MEMORY:
        reserved = max(reserved, LEAST_OF_LARGE)
    reserved += {"none": 0, "ngram": reserve.ngram_draft_bytes, "own": reserve.draft_bytes}[served.drafts]
    return round(max(memory_bytes - reserved, 0) / memory_bytes, 3)


def _captured_bytes(reserve: StaticReserve, tier: ReserveTier, served: Served) -> int:
    """Return what graphs of decoding and of prompts take, and what copies of the attention add. [bytes]."""
    captured = tier.captured if served.tensor_ranks < FOUR_RANKS else tier.captured_of_four
    if reserve.caps_captured:
        captured = min(captured, served.running)
    taken = reserve.bytes_per_captured * captured
    if served.attention_copies > 1:
        copies = reserve.bytes_per_copy_and_captured * served.attention_copies * captured
        taken += reserve.copies_bytes + (copies * 3 // 2 if captured > MANY_CAPTURED else copies)
    uncaptured = reserve.prompts_uncaptured_for
    if uncaptured is None or (uncaptured | ALWAYS) & served.obstacles:
        return taken
    return taken + (LATENT_PROMPT_BYTES if served.is_latent else PROMPT_BYTES * prompt_lengths(served.chunk_tokens))


def prompt_lengths(chunk_tokens: int) -> int:
    """Return how many lengths of prompts are captured, up to a chunk. [count].

    Source: SGLang `server_args.py` (`_generate_piecewise_cuda_graph_tokens`), of 0.5.10; 58 up to 8,192 tokens:

    >>> prompt_lengths(8_192), prompt_lengths(2_048)
    (58, 42)
    """
    short = ((4, 32, 4), (48, 256, 16), (288, 512, 32), (576, 1_024, 64), (1_280, 4_096, 256))
    steps = (*short, (4_608, chunk_tokens, 512))
    return sum(len(range(first, min(last, chunk_tokens) + 1, step)) for first, last, step in steps)


def _vision(tower: tuple[int, int] | None) -> float:
    """Return by how much a tower for images cuts the share. [fraction]."""
    layers, width = TOWER if tower is None else tower
    size = layers * width**2 / (TOWER[0] * TOWER[1] ** 2)
    return VISION_SHARE * max(0.8, min(1.05, 1.0 - 0.1 * (size - 1.0)))
