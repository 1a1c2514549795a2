"""Who asks, and whether they may: keys from the settings and from the database, before anything is read."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from service.access.keys import ANYBODY, Caller, InvalidKeyError, Keys, caller_of, configured_caller, is_token
from service.access.limits import Limiter
from service.access.matrix import row_of
from service.api.problems import FieldProblem, ProblemError, problem_response
from service.api.shelf import Shelf
from service.settings import Settings

if TYPE_CHECKING:
    from service.access.tokens import Tokens

KEY_HEADER: Final = "x-api-key"
MOST_KEY: Final = 8_192  # a token names its claims
CHALLENGE: Final = {"WWW-Authenticate": "APIKey"}
NEEDS_KEY: Final = "this needs a valid key in the X-API-Key header, or as Authorization: Bearer"
PROVIDER_AWAY: Final = "the keys that tokens are checked with are not to be had; a key of this service is still taken"
READ_ONLY: Final = "this service has no API key configured, so it is read-only"


def unauthorized() -> ProblemError:
    """Return that a key is missing or wrong."""
    return ProblemError(401, "unauthorized", NEEDS_KEY, [_of_key(NEEDS_KEY)], CHALLENGE)


def _of_key(detail: str) -> FieldProblem:
    return FieldProblem(field="x-api-key", detail=detail, accepted="a key that whoever runs this service created")


class Access:
    """ASGI middleware: an operation is passed on to those who may ask for it; a key that is stated must be valid."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        """Wrap an application."""
        self._app = app
        self._accepted = settings.accepted_keys()
        self._reads_need_key = settings.reads_need_key
        self._limiter = Limiter(settings.key_requests_per_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on with its caller, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            scope.setdefault("state", {})["caller"] = await self._admitted(scope)
        except ProblemError as error:
            refusal = problem_response(error.status, error.kind, error.detail, error.errors, error.headers)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    async def _admitted(self, scope: Scope) -> Caller:
        """Return who asks, where they may.

        Raises:
            ProblemError: they may not.
        """
        row = row_of(scope["method"], scope["path"])
        needed = None if row is None or (row[0] == "read" and not self._reads_need_key) else row[0]
        if row == (None,):
            return ANYBODY
        key = _stated_key(Headers(scope=scope))
        if key is None and needed is None:
            return ANYBODY
        caller = await self._caller(key, scope)
        if not caller.may(needed):
            held = (
                f"this key's scope is {caller.scope}" if caller.scope else "this token names no scope of this service"
            )
            raise ProblemError(403, "forbidden", f"{held}, and this needs {needed}")
        wait_s = self._limiter.wait_s(caller.name)
        if wait_s:
            detail = "this key asks more often than it may"
            raise ProblemError(429, "too-many-requests", detail, headers={"Retry-After": str(wait_s)})
        return caller

    async def _caller(self, key: str | None, scope: Scope) -> Caller:
        configured = None if key is None else configured_caller(key, self._accepted)
        if configured is not None:
            return configured
        tokens: Tokens | None = scope["app"].state.tokens
        try:
            if tokens is not None and key is not None and is_token(key):
                return await _holder(tokens, key)
            keys = await self._keys(scope)
            if not self._accepted and not keys and tokens is None:
                raise ProblemError(403, "read-only", READ_ONLY, [_of_key(READ_ONLY)])
            return caller_of(key or "", keys, datetime.now(UTC))
        except InvalidKeyError as error:
            raise unauthorized() from error

    async def _keys(self, scope: Scope) -> Keys:
        """Return the keys of the database; where it never answered, those of the settings alone are valid."""
        shelf: Shelf[Keys] = scope["app"].state.keys
        try:
            return await shelf.rows()
        except ProblemError:
            return {}


async def _holder(tokens: "Tokens", token: str) -> Caller:
    """Return who holds a token.

    Raises:
        InvalidKeyError: it is not valid.
        ProblemError: nobody can tell.
    """
    from service.access.tokens import ProviderAwayError  # noqa: PLC0415 - cryptography, which few services need

    try:
        return await tokens.caller(token)
    except ProviderAwayError as error:
        raise ProblemError(503, "provider-away", PROVIDER_AWAY, headers={"Retry-After": "10"}) from error


def _stated_key(headers: Mapping[str, str]) -> str | None:
    """Return the key a request states."""
    key = headers.get(KEY_HEADER)
    if key is None:
        kind, _, key = headers.get("authorization", "").partition(" ")
        key = key if kind.lower() == "bearer" else None
    return None if key is None else key.strip()[:MOST_KEY]  # RFC 9110, 5.5: space around a value is none of it


async def get_caller(request: Request) -> Caller:
    """Return who asks."""
    caller: Caller = request.state.caller
    return caller
