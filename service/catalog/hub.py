"""Fetches a model's published facts from a hub; nothing downloaded is ever executed."""

import json
import struct
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urljoin, urlsplit

import httpx2

MAX_BYTES = 5 * 1024 * 1024
MAX_REDIRECTS = 3
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
INDEX_FILE = "model.safetensors.index.json"
SINGLE_FILE = "model.safetensors"
HEADER_LENGTH_BYTES = 8
MAX_SHARDS = 400


class HubError(RuntimeError):
    """The hub did not give what was asked for."""

    def __init__(self, detail: str, *, missing: bool = False) -> None:
        """Keep the sentence, and whether the model simply does not exist there."""
        super().__init__(detail)
        self.detail = detail
        self.missing = missing


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModel:
    """What a hub states about a model."""

    hf_id: str
    config: dict[str, Any]
    num_parameters: int | None  # elements in the safetensors headers
    weight_bytes: int | None  # bytes of the tensors
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
        self._timeout = httpx2.Timeout(timeout_seconds)
        self._check(self._base)

    def _check(self, url: str) -> None:
        parts = urlsplit(url)
        host = (parts.hostname or "").lower()
        if parts.scheme == "http" and host in LOOPBACK and host in self._hosts:
            return
        if parts.scheme != "https":
            raise HubError("the hub must be reached over https")
        if host not in self._hosts:
            raise HubError(f"the host {host!r} is not on the list of allowed hosts")

    def published(self, hf_id: str) -> PublishedModel:
        """Return a model's config and counts.

        Raises:
            HubError: the model is not there, too large an answer, a time-out, or a host off the list.
        """
        with httpx2.Client(timeout=self._timeout, follow_redirects=False, trust_env=True) as client:
            url = self._url(hf_id, "config.json")
            config = _json_object(self._get(client, url), "config.json")
            parameters, size = self._counts(client, hf_id)
        return PublishedModel(hf_id=hf_id, config=config, num_parameters=parameters, weight_bytes=size, config_url=url)

    def _url(self, hf_id: str, file: str) -> str:
        return urljoin(self._base, f"{quote(hf_id)}/resolve/main/{quote(file)}")

    def _counts(self, client: httpx2.Client, hf_id: str) -> tuple[int | None, int | None]:
        """Return elements and bytes by the safetensors headers; None where there are no such files."""
        try:
            index = _json_object(self._get(client, self._url(hf_id, INDEX_FILE)), INDEX_FILE)
            files = sorted(set(_weight_map(index)))
        except HubError as error:
            if not error.missing:
                raise
            files = [SINGLE_FILE]
        if len(files) > MAX_SHARDS:
            raise HubError(f"the model has more than {MAX_SHARDS} weight files")
        elements = size = 0
        for file in files:
            try:
                header = self._header(client, self._url(hf_id, file))
            except HubError as error:
                if error.missing:
                    return None, None
                raise
            for tensor in header.values():
                counted, stored = _tensor(tensor)
                elements += counted
                size += stored
        return elements, size

    def _header(self, client: httpx2.Client, url: str) -> dict[str, Any]:
        """Return a safetensors header: eight bytes of length, then JSON; the tensors are never fetched."""
        prefix = self._get(client, url, first=0, last=HEADER_LENGTH_BYTES - 1)
        if len(prefix) < HEADER_LENGTH_BYTES:
            raise HubError("a weight file is too short to be safetensors")
        (length,) = struct.unpack("<Q", prefix[:HEADER_LENGTH_BYTES])
        if not 2 <= length <= MAX_BYTES:
            raise HubError("a weight file has no readable safetensors header")
        body = self._get(client, url, first=HEADER_LENGTH_BYTES, last=HEADER_LENGTH_BYTES + length - 1)
        header = _json_object(body[:length], "safetensors header")
        header.pop("__metadata__", None)
        return header

    def _get(self, client: httpx2.Client, url: str, *, first: int | None = None, last: int | None = None) -> bytes:
        """Return a body of at most 5 MiB, following redirects to allowed hosts only."""
        headers = {} if first is None else {"range": f"bytes={first}-{last}"}
        for _ in range(MAX_REDIRECTS + 1):
            self._check(url)
            try:
                with client.stream("GET", url, headers=headers) as response:
                    if response.is_redirect:
                        url = urljoin(url, response.headers.get("location", ""))
                        continue
                    return _limited(response, first, last)
            except httpx2.TimeoutException as error:
                raise HubError("the hub did not answer in time") from error
            except httpx2.HTTPError as error:
                raise HubError(f"the hub could not be reached ({type(error).__name__})") from error
        raise HubError("the hub redirects too often")


def _limited(response: httpx2.Response, first: int | None, last: int | None) -> bytes:
    if response.status_code in (401, 403):
        raise HubError("the model is gated or private on the hub; paste its config.json as model_config instead")
    if response.status_code == 404:
        raise HubError("the hub has no such model or file", missing=True)
    if response.status_code not in (200, 206):
        raise HubError(f"the hub answered {response.status_code}")
    # A server that ignores ranges sends the file from its start.
    skip = first or 0 if response.status_code == 200 else 0
    wanted = MAX_BYTES if last is None else last - (first or 0) + 1
    body = bytearray()
    for chunk in response.iter_bytes():
        body += chunk
        if last is not None and len(body) >= skip + wanted:
            break
        if len(body) > MAX_BYTES + skip:
            raise HubError("the hub's answer is larger than 5 MiB")
    return bytes(body[skip : skip + wanted])


def _json_object(body: bytes, what: str) -> dict[str, Any]:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HubError(f"{what} is not readable JSON") from error
    if not isinstance(document, dict):
        raise HubError(f"{what} is not a JSON object")
    return document


def _weight_map(index: dict[str, Any]) -> list[str]:
    mapping = index.get("weight_map")
    if not isinstance(mapping, dict):
        raise HubError(f"{INDEX_FILE} has no weight_map")
    return [str(file) for file in mapping.values()]


def _tensor(tensor: Any) -> tuple[int, int]:
    """Return the elements and stored bytes of one tensor of a header."""
    if not isinstance(tensor, dict):
        raise HubError("a weight file has an unreadable safetensors header")
    shape, offsets = tensor.get("shape"), tensor.get("data_offsets")
    if not isinstance(shape, list) or not isinstance(offsets, list) or len(offsets) != 2:
        raise HubError("a weight file has an unreadable safetensors header")
    elements = 1
    for side in shape:
        if not isinstance(side, int) or side < 0:
            raise HubError("a weight file has an unreadable safetensors header")
        elements *= side
    return elements, int(offsets[1]) - int(offsets[0])
