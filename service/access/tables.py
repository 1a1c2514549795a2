"""The table of API keys. A key itself is shown once and kept nowhere; its hash tells whether one is it."""

from datetime import datetime
from typing import ClassVar

from sqlalchemy import CheckConstraint, DateTime
from sqlmodel import Field, SQLModel


class ApiKeyRow(SQLModel, table=True):
    """One key: whose it is, what it may do, until when."""

    __tablename__: ClassVar[str] = "api_keys"
    __table_args__ = (CheckConstraint("scope IN ('read', 'write', 'admin')", name="scope_known"),)

    id: str = Field(primary_key=True, max_length=16)
    name: str = Field(max_length=200)
    secret_hash: str = Field(max_length=64)  # SHA-256 in hexadecimal; a secret of 256 random bits needs no stretching
    scope: str = Field(max_length=8)
    created_at: datetime = Field(sa_type=DateTime(timezone=True))
    expires_at: datetime | None = Field(default=None, sa_type=DateTime(timezone=True))
    revoked_at: datetime | None = Field(default=None, sa_type=DateTime(timezone=True))
