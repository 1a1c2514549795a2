"""Tokens of an OpenID provider as keys: signed by it, for this service, not ended, with a scope of ours.

Sources:
    RFC 8725, sections 3.1, 3.2, 3.8, 3.9: algorithms from a list and never from the token, no `none`, the key's own
    algorithm, issuer and audience checked; RFC 7517: a set of keys, `kid`, `use`, `alg`.
    OpenID Connect Discovery 1.0, section 4.3: the document's `issuer` is exactly the one it was asked of.
"""

from asyncio import Lock
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import jwt

from service.access.keys import SCOPES, Caller, InvalidKeyError
from service.outward.errors import OutwardError
from service.outward.reader import JsonReader

KEPT_S: Final = 600.0  # a set of keys, and for as long as the provider is away
AGAIN_S: Final = 10.0  # between two askings, whatever tokens name
MOST_KEYS: Final = 100
MOST_NAME: Final = 150
KEY_TYPES: Final = frozenset({"RSA", "EC", "OKP"})  # a shared secret is none that a provider publishes
REQUIRED: Final = ["exp", "iss", "aud", "sub"]


class ProviderAwayError(RuntimeError):
    """The provider's keys were never read, and it does not answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """Whose tokens are taken, and how they are read."""

    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    jwks_url: str | None  # None: as the issuer's discovery document says
    scope_claim: str
    scope_prefix: str
    leeway_s: float


class Tokens:
    """Reads tokens; the provider's keys are kept for a while, and asked for again where one is not among them."""

    def __init__(self, provider: Provider, reader: JsonReader, now_s: Callable[[], float] = monotonic) -> None:
        """Keep whose tokens are taken, and who fetches keys."""
        self._provider, self._reader, self._now_s = provider, reader, now_s
        self._keys: tuple[Mapping[str, Any], ...] = ()
        self._read_at = self._asked_at = float("-inf")
        self._lock = Lock()

    async def caller(self, token: str) -> Caller:
        """Return who holds a token.

        Raises:
            InvalidKeyError: it is none of this provider, for this service, and of this time.
            ProviderAwayError: nobody can tell.
        """
        try:
            header = jwt.get_unverified_header(token)
        except jwt.PyJWTError as error:
            raise InvalidKeyError from error
        algorithm, name = header.get("alg"), header.get("kid")
        if algorithm not in self._provider.algorithms:
            raise InvalidKeyError
        claims = self._claims(token, await self._key(name, algorithm), algorithm)
        return Caller(name=f"{claims['sub'][:MOST_NAME]} (token)", scope=self._scope(claims))

    def _claims(self, token: str, key: Mapping[str, Any], algorithm: str) -> dict[str, Any]:
        provider = self._provider
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(key), algorithm),
                algorithms=[algorithm],
                issuer=provider.issuer,
                audience=provider.audience,
                leeway=provider.leeway_s,
                options={"require": REQUIRED},
            )
        except (jwt.PyJWTError, ValueError, TypeError) as error:
            raise InvalidKeyError from error
        return claims

    def _scope(self, claims: Mapping[str, Any]) -> Any:
        """Return the highest of our scopes that a token names; None where it names none."""
        stated = claims.get(self._provider.scope_claim, "")
        named = stated.split() if isinstance(stated, str) else stated if isinstance(stated, list) else []
        held = [scope for scope in SCOPES if f"{self._provider.scope_prefix}{scope}" in named]
        return held[-1] if held else None

    async def _key(self, name: object, algorithm: str) -> Mapping[str, Any]:
        """Return the key that a token names, or the only one there is.

        Raises:
            InvalidKeyError: there is none.
            ProviderAwayError: no keys were ever read.
        """
        if self._now_s() - self._read_at >= KEPT_S:
            await self._refresh()
        key = self._named(name, algorithm)
        if key is None:
            await self._refresh()
            key = self._named(name, algorithm)
        if key is None and self._read_at == float("-inf"):
            raise ProviderAwayError
        if key is None:
            raise InvalidKeyError
        return key

    def _named(self, name: object, algorithm: str) -> Mapping[str, Any] | None:
        fitting = [key for key in self._keys if key.get("alg") in (None, algorithm)]
        if name is None:
            return fitting[0] if len(fitting) == 1 else None
        return next((key for key in fitting if key.get("kid") == name), None)

    async def _refresh(self) -> None:
        """Read the keys again; those of before stay where that does not succeed."""
        async with self._lock:
            if self._now_s() - self._asked_at < AGAIN_S:
                return
            self._asked_at = self._now_s()
            try:
                self._keys = await self._published()
                self._read_at = self._now_s()
            except OutwardError:
                return

    async def _published(self) -> tuple[Mapping[str, Any], ...]:
        """Return the provider's keys that signatures may be checked with."""
        document = await self._document(self._provider.jwks_url or await self._discovered())
        stated = document.get("keys")
        keys = [key for key in stated if isinstance(key, dict)] if isinstance(stated, list) else []
        usable = [key for key in keys if key.get("kty") in KEY_TYPES and key.get("use", "sig") == "sig"]
        if not usable:
            raise OutwardError("no keys to check signatures with")
        return tuple(usable[:MOST_KEYS])

    async def _discovered(self) -> str:
        document = await self._document(self._provider.issuer.rstrip("/") + "/.well-known/openid-configuration")
        if document.get("issuer") != self._provider.issuer or not isinstance(document.get("jwks_uri"), str):
            raise OutwardError("a discovery document of another issuer")
        url: str = document["jwks_uri"]
        return url

    async def _document(self, url: str) -> dict[str, Any]:
        status, document = await self._reader.read(url)
        if status != 200 or not isinstance(document, dict):
            raise OutwardError(f"status {status}")
        return document

    async def close(self) -> None:
        """Let go of connections."""
        await self._reader.close()
