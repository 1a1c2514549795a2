"""What SGLang reserves by version, as the engine-rules table writes it."""

from typing import Annotated

from pydantic import Field

from service.catalog.engine_rows import Entry
from service.engine.arithmetic import GIB, MIB
from service.engine.engines.static_share import PromptObstacle, ReserveTier, StaticReserve

Amount = Annotated[float, Field(ge=0)]


class ReserveTierRow(Entry):
    """What is reserved on GPUs with at least this memory."""

    at_least_memory_gib: Amount
    reserved_mib: Amount
    mib_per_rank: Amount
    captured: tuple[int, int] = (0, 0)  # requests of the largest graph, below four ranks and from there on

    def tier(self) -> ReserveTier:
        """Return the same in bytes."""
        return ReserveTier(
            at_least_memory_bytes=round(self.at_least_memory_gib * GIB),
            reserved_bytes=round(self.reserved_mib * MIB),
            bytes_per_rank=round(self.mib_per_rank * MIB),
            captured=self.captured[0],
            captured_of_four=self.captured[1],
        )


class Reserve(Entry):
    """What a version reserves where nobody states a share."""

    tiers: tuple[ReserveTierRow, ...]
    shares_by_ranks: dict[int, float] = Field(default_factory=dict)
    mib_per_chunk_token: Amount = 0
    mib_per_captured: Amount = 0
    has_least: bool = False
    draft_mib: Amount = 0
    ngram_draft_mib: Amount = 0
    copies_mib: Amount = 0
    mib_per_copy_and_captured: Amount = 0
    sees_vision: bool = False
    caps_captured: bool = False
    prompts_uncaptured_for: frozenset[PromptObstacle] | None = None

    def reserve(self) -> StaticReserve:
        """Return the same in bytes."""
        return StaticReserve(
            tiers=tuple(tier.tier() for tier in self.tiers),
            shares_by_ranks=self.shares_by_ranks,
            bytes_per_chunk_token=round(self.mib_per_chunk_token * MIB),
            bytes_per_captured=round(self.mib_per_captured * MIB),
            has_least=self.has_least,
            draft_bytes=round(self.draft_mib * MIB),
            ngram_draft_bytes=round(self.ngram_draft_mib * MIB),
            copies_bytes=round(self.copies_mib * MIB),
            bytes_per_copy_and_captured=round(self.mib_per_copy_and_captured * MIB),
            sees_vision=self.sees_vision,
            caps_captured=self.caps_captured,
            prompts_uncaptured_for=self.prompts_uncaptured_for,
        )
