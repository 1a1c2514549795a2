"""Fetches a model's published facts from a hub; nothing downloaded is ever executed."""

import json
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx2

from service.catalog.safetensors import Counts, UnreadableWeightsError, header_counts, stated_counts, weight_files
from service.engine.families import stated_quantization

MAX_BYTES = 5 * 1024 * 1024
MAX_REDIRECTS = 3
MAX_SHARDS = 400
TIME_OUTS_PER_IMPORT = 6  # a hub that trickles is given up on as well
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
CONFIG_FILE = "config.json"
QUANTIZATION_FILE = "hf_quant_config.json"
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
HEADER_LENGTH_BYTES = 8
FILE_NOT_HERE = "the hub has no such model or file"


class HubError(RuntimeError):
    """The hub could not be asked, or did not answer."""

    def __init__(self, detail: str) -> None:
        """Keep the sentence."""
        super().__init__(detail)
        self.detail = detail


class NotOnHubError(HubError):
    """The hub has no such model or file."""


class UnusableHubAnswerError(HubError):
    """What the hub has cannot be imported."""


class RedirectedAwayError(UnusableHubAnswerError):
    """The hub keeps the file on a host that imports may not talk to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """What a hub states about a model."""

    hf_id: str
    config: dict[str, Any]
    quantization: Mapping[str, Any] | None  # from the config, or from the file beside it
    counts: Counts | None  # by the safetensors headers
    config_url: str


class Hub:
    """A client for one hub or mirror, confined to the hosts allowed."""

    def __init__(self, base_url: str, allowed_hosts: frozenset[str], timeout_seconds: float) -> None:
        """Keep where to ask; plain http is accepted for a loopback mirror only.

        Raises:
            HubError: the base URL is not https, or its host is not allowed.
        """
        self._base = base_url.rstrip("/") + "/"
        self._hosts = allowed_hosts
        self._timeout_seconds = timeout_seconds
        self._deadline = time.monotonic() + TIME_OUTS_PER_IMPORT * timeout_seconds
        scheme, host, _ = _origin(self._base)
        if scheme != "https" and not (scheme == "http" and host in LOOPBACK):
            raise HubError("the hub must be reached over https")
        if host not in allowed_hosts:
            raise HubError(f"the host {host!r} is not on the list of allowed hosts")

    def published(self, hf_id: str) -> PublishedModel:
        """Return a model's config and counts.

        Raises:
            HubError: the model is not there, too large an answer, a time-out, or a host off the list.
        """
        # A proxy or stored credentials from the environment have no business with a mirror on this machine.
        trust_env = _origin(self._base)[1] not in LOOPBACK
        with httpx2.Client(timeout=self._timeout_seconds, follow_redirects=False, trust_env=trust_env) as client:
            url = self._url(hf_id, CONFIG_FILE)
            config = _json_object(self._get(client, url), CONFIG_FILE)
            try:
                counts = self._counts(client, hf_id)
            except UnreadableWeightsError as error:
                raise UnusableHubAnswerError(str(error)) from error
            return PublishedModel(
                hf_id=hf_id,
                config=config,
                quantization=stated_quantization(config) or self._quantization_beside(client, hf_id),
                counts=counts,
                config_url=url,
            )

    def _url(self, hf_id: str, file: str) -> str:
        return urljoin(self._base, f"{quote(hf_id)}/resolve/main/{quote(file)}")

    def _quantization_beside(self, client: httpx2.Client, hf_id: str) -> dict[str, Any] | None:
        try:
            return _json_object(self._get(client, self._url(hf_id, QUANTIZATION_FILE)), QUANTIZATION_FILE)
        except NotOnHubError:
            return None

    def _counts(self, client: httpx2.Client, hf_id: str) -> Counts | None:
        """Return what the hub has counted in the headers, else what they say; None without such files.

        A large hub keeps weights on other hosts, where imports do not follow.
        """
        url = urljoin(self._base, f"api/models/{quote(hf_id)}?expand[]=safetensors")
        try:
            counts = stated_counts(_json_object(self._get(client, url), "the hub's answer"))
        except (NotOnHubError, UnusableHubAnswerError):
            counts = None
        if counts is not None:
            return counts
        try:
            return self._header_counts(client, hf_id)
        except (NotOnHubError, RedirectedAwayError):
            return None

    def _header_counts(self, client: httpx2.Client, hf_id: str) -> Counts:
        files: tuple[str, ...] = (SINGLE_FILE,)
        with suppress(NotOnHubError):  # a small model has one file and no index
            files = weight_files(_json_object(self._get(client, self._url(hf_id, INDEX_FILE)), INDEX_FILE))
        if len(files) > MAX_SHARDS:
            raise UnusableHubAnswerError(f"the model has more than {MAX_SHARDS} weight files")
        counts = Counts(0, 0)
        for file in files:
            counts += header_counts(self._header(client, self._url(hf_id, file)))
        return counts

    def _header(self, client: httpx2.Client, url: str) -> dict[str, Any]:
        """Return a safetensors header: eight bytes of length, then JSON; the tensors are never fetched."""
        prefix = self._get(client, url, first=0, last=HEADER_LENGTH_BYTES - 1)
        if len(prefix) < HEADER_LENGTH_BYTES:
            raise UnusableHubAnswerError("a weight file is too short to be safetensors")
        (length,) = struct.unpack("<Q", prefix[:HEADER_LENGTH_BYTES])
        if not 2 <= length <= MAX_BYTES:
            raise UnusableHubAnswerError("a weight file has no readable safetensors header")
        body = self._get(client, url, first=HEADER_LENGTH_BYTES, last=HEADER_LENGTH_BYTES + length - 1)
        return _json_object(body[:length], "a safetensors header")

    def _get(self, client: httpx2.Client, url: str, *, first: int = 0, last: int | None = None) -> bytes:
        """Return a body of at most 5 MiB, following redirects to allowed hosts only."""
        headers = {"accept-encoding": "identity"}  # what is capped is what is sent
        if last is not None:
            headers["range"] = f"bytes={first}-{last}"
        try:
            for _ in range(MAX_REDIRECTS + 1):
                with client.stream("GET", url, headers=headers) as response:
                    if not response.is_redirect:
                        return self._limited(response, first, last)
                    url = self._redirected(url, response.headers.get("location", ""))
        except httpx2.InvalidURL as error:
            raise UnusableHubAnswerError("the hub redirects to something that is no URL") from error
        except httpx2.TimeoutException as error:
            raise HubError("the hub did not answer in time") from error
        except httpx2.HTTPError as error:
            raise HubError(f"the hub could not be reached ({type(error).__name__})") from error
        raise HubError("the hub redirects too often")

    def _redirected(self, url: str, location: str) -> str:
        """Return where a redirect leads: within the hub, or to an allowed host over https."""
        try:
            target = urljoin(url, location)
            scheme, host, port = _origin(target)
        except ValueError as error:
            raise UnusableHubAnswerError("the hub redirects to something that is no URL") from error
        allowed = scheme == "https" and host in self._hosts and port == 443
        if not allowed and (scheme, host, port) != _origin(self._base):
            raise RedirectedAwayError(
                f"the hub redirects to {host[:100]!r}, which is not on the list of allowed hosts over https"
            )
        return target

    def _limited(self, response: httpx2.Response, first: int, last: int | None) -> bytes:
        _check_status(response)
        # A server that ignores ranges sends the file from its start.
        skip = first if response.status_code == 200 else 0
        wanted = MAX_BYTES if last is None else last - first + 1
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if time.monotonic() > self._deadline:
                raise HubError("the hub did not answer in time")
            if last is not None and len(body) >= skip + wanted:
                break
            if len(body) > MAX_BYTES + skip:
                raise UnusableHubAnswerError("the hub's answer is larger than 5 MiB")
        return bytes(body[skip : skip + wanted])


def _origin(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a URL.

    Raises:
        ValueError: it is no URL.
    """
    parts = urlsplit(url)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or (443 if parts.scheme == "https" else 80)


def _check_status(response: httpx2.Response) -> None:
    if response.status_code in (401, 403):
        raise UnusableHubAnswerError(
            "the model is gated, private or not there; paste its config.json as model_config instead"
        )
    if response.status_code == 404:
        raise NotOnHubError(FILE_NOT_HERE)
    if response.status_code not in (200, 206):
        raise HubError(f"the hub answered {response.status_code}")
    if response.headers.get("content-encoding", "identity") != "identity":
        raise UnusableHubAnswerError("the hub's answer is compressed, although it was asked for plainly")


def _json_object(body: bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UnusableHubAnswerError(f"{what} is not readable JSON") from error
    if not isinstance(document, dict):
        raise UnusableHubAnswerError(f"{what} is not a JSON object")
    return document
