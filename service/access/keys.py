"""API keys: made and shown once, hashed at rest, each with a scope and an end."""

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final, Literal, get_args

from sqlmodel import Session, col, select

from service.access.tables import ApiKeyRow

Scope = Literal["read", "write", "admin"]  # each may do what those before it may
SCOPES: Final[tuple[Scope, ...]] = get_args(Scope)
PREFIX: Final = "sizer"
Keys = Mapping[str, ApiKeyRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks; `anybody` without a key."""

    name: str
    scope: Scope | None

    def may(self, needed: Scope | None) -> bool:
        """Return whether this caller's scope is enough."""
        if needed is None:
            return True
        return self.scope is not None and SCOPES.index(self.scope) >= SCOPES.index(needed)


class InvalidKeyError(RuntimeError):
    """A key that is none, has ended, or was taken back."""


ANYBODY: Final = Caller(name="anybody", scope=None)


def hashed(secret: str) -> str:
    """Return what is kept of a secret."""
    return sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def create_key(session: Session, name: str, scope: Scope, days: int | None) -> str:
    """Keep a new key's hash, and return the key: nobody can show it again."""
    now, key_id, secret = datetime.now(UTC), secrets.token_hex(6), secrets.token_urlsafe(32)
    ends = None if days is None else now + timedelta(days=days)
    row = ApiKeyRow(
        id=key_id, name=name, secret_hash=hashed(secret), scope=scope, created_at=now, expires_at=ends, revoked_at=None
    )
    session.add(row)
    return f"{PREFIX}_{key_id}_{secret}"


def revoke_key(session: Session, key_id: str) -> bool:
    """Take a key back; return whether there is such a key."""
    row = session.get(ApiKeyRow, key_id)
    if row is None:
        return False
    row.revoked_at = row.revoked_at or datetime.now(UTC)
    return True


def read_keys(session: Session) -> Keys:
    """Return every key's row by its id."""
    rows = session.exec(select(ApiKeyRow).order_by(col(ApiKeyRow.created_at))).all()
    session.expunge_all()
    return {row.id: row for row in rows}


def caller_of(key: str, keys: Keys, now: datetime) -> Caller:
    """Return who holds a key.

    Raises:
        InvalidKeyError: nobody does, or no longer.
    """
    prefix, _, rest = key.partition("_")
    key_id, _, secret = rest.partition("_")
    row = keys.get(key_id) if prefix == PREFIX else None
    # A stranger's key is hashed as well, so that it takes as long.
    is_its = hmac.compare_digest(hashed(secret), "" if row is None else row.secret_hash)
    if row is None or not is_its or row.revoked_at is not None or _has_ended(row, now):
        raise InvalidKeyError
    scope = next(scope for scope in SCOPES if scope == row.scope)
    return Caller(name=f"{row.name} ({row.id})", scope=scope)


def is_token(key: str) -> bool:
    """Return whether what a caller states may be a token: three parts, the first of which begins an object.

    >>> is_token("eyJhbGciOiJub25lIn0.e30."), is_token("sizer_0123456789ab_secret")
    (True, False)
    """
    return key.startswith("eyJ") and key.count(".") == 2


def configured_caller(key: str, accepted: tuple[str, ...]) -> Caller | None:
    """Return who holds a key that the settings name, told apart by a part of its hash; None where it is none."""
    given = key.encode("utf-8", "surrogateescape")
    matches = [hmac.compare_digest(given, one.encode()) for one in accepted]
    return Caller(name=f"configured key {hashed(key)[:8]}", scope="admin") if any(matches) else None


def _has_ended(row: ApiKeyRow, now: datetime) -> bool:
    ends = row.expires_at
    if ends is None:
        return False
    return (ends if ends.tzinfo else ends.replace(tzinfo=UTC)) <= now
