"""Asks a hub what it publishes about a model: config, quantization, and counts of its weights."""

import asyncio
import struct
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urljoin

import httpx2

from service.engine.families import stated_quantization
from service.hub.errors import HubError, NotOnHubError, RedirectedAwayError, UnusableHubAnswerError
from service.hub.fetch import MAX_BYTES, NOT_IN_TIME, Fetcher, json_object
from service.hub.safetensors import Counts, UnreadableWeightsError, header_counts, stated_counts, weight_files

MAX_CONFIG_BYTES: Final = MAX_BYTES  # as much as a caller may send; the longest published one has 2.4 MB
MAX_SHARDS: Final = 400
CONFIG_FILE: Final = "config.json"
QUANTIZATION_FILE: Final = "hf_quant_config.json"
INDEX_FILE: Final = "model.safetensors.index.json"
SINGLE_FILE: Final = "model.safetensors"
HEADER_LENGTH_BYTES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """What a hub states about a model."""

    hf_id: str
    config: dict[str, Any]
    quantization: Mapping[str, Any] | None  # from the config, or from the file beside it
    counts: Counts | None  # by the safetensors headers
    config_url: str


class Hub:
    """A client for one hub or mirror, confined to the hosts allowed; each import has one deadline for all of it."""

    def __init__(self, fetcher: Fetcher, deadline_seconds: float) -> None:
        """Keep how to fetch, and how long an import may take, however busily a hub trickles."""
        self._fetcher = fetcher
        self._deadline_seconds = deadline_seconds

    def published(self, hf_id: str) -> PublishedModel:
        """Return a model's config and counts.

        Raises:
            HubError: the model is not there, too large an answer, a time-out, or a host off the list.
        """
        return asyncio.run(self._published(hf_id))

    async def _published(self, hf_id: str) -> PublishedModel:
        try:
            async with asyncio.timeout(self._deadline_seconds), self._fetcher.client() as client:
                return await _Model(self._fetcher, client, hf_id).published()
        except TimeoutError as error:
            raise HubError(NOT_IN_TIME) from error
        except UnreadableWeightsError as error:
            raise UnusableHubAnswerError(str(error)) from error


class _Model:
    """One model on the hub, and the connection it is asked about over."""

    def __init__(self, fetcher: Fetcher, client: httpx2.AsyncClient, hf_id: str) -> None:
        self._fetcher = fetcher
        self._client = client
        self._hf_id = hf_id

    async def published(self) -> PublishedModel:
        """Return what the hub states about it."""
        config = await self._document(CONFIG_FILE, MAX_CONFIG_BYTES)
        counts = await self._counts()
        return PublishedModel(
            hf_id=self._hf_id,
            config=config,
            quantization=stated_quantization(await self._with_file_beside(config)),
            counts=counts,
            config_url=urljoin(self._fetcher.base, self._path(CONFIG_FILE)),
        )

    def _path(self, file: str) -> str:
        return f"{quote(self._hf_id)}/resolve/main/{quote(file)}"

    async def _document(self, file: str, most_bytes: int = MAX_BYTES) -> dict[str, Any]:
        return await self._fetcher.document(self._client, self._path(file), file, most_bytes)

    async def _with_file_beside(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return a config with the quantization that stands in a file beside it, which counts where it states none."""
        if config.get("quantization_config") is not None:
            return config
        try:
            return {**config, "hf_quant_config": await self._document(QUANTIZATION_FILE)}
        except NotOnHubError:
            return config

    async def _counts(self) -> Counts | None:
        """Return what the hub has counted in the headers, else what they say; None without such files.

        A large hub keeps weights on other hosts, where imports do not follow.
        """
        path = f"api/models/{quote(self._hf_id)}?expand[]=safetensors"
        with suppress(NotOnHubError, UnusableHubAnswerError):
            counts = stated_counts(await self._fetcher.document(self._client, path, "the hub's answer"))
            if counts is not None:
                return counts
        try:
            return await self._header_counts()
        except (NotOnHubError, RedirectedAwayError):
            return None

    async def _header_counts(self) -> Counts:
        files: tuple[str, ...] = (SINGLE_FILE,)
        with suppress(NotOnHubError):  # a small model has one file and no index
            files = weight_files(await self._document(INDEX_FILE))
        if len(files) > MAX_SHARDS:
            raise UnusableHubAnswerError(f"the model has more than {MAX_SHARDS} weight files")
        counts = Counts(0, 0)
        for file in files:
            counts += header_counts(await self._header(self._path(file)))
        return counts

    async def _header(self, path: str) -> dict[str, Any]:
        """Return a safetensors header: eight bytes of length, then JSON; the tensors are never fetched."""
        prefix = await self._fetcher.part(self._client, path, 0, HEADER_LENGTH_BYTES)
        if len(prefix) < HEADER_LENGTH_BYTES:
            raise UnusableHubAnswerError("a weight file is too short to be safetensors")
        (length_bytes,) = struct.unpack("<Q", prefix)
        if not 2 <= length_bytes <= MAX_BYTES:
            raise UnusableHubAnswerError("a weight file has no readable safetensors header")
        header = await self._fetcher.part(self._client, path, HEADER_LENGTH_BYTES, length_bytes)
        return json_object(header, "a safetensors header")
