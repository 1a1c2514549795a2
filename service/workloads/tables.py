"""The tables of named workloads; they have versions of their own, and never touch the catalog's revision."""

from datetime import datetime
from typing import ClassVar

from sqlalchemy import JSON, CheckConstraint, DateTime
from sqlmodel import Field, SQLModel

from service.catalog.tables import ID_LENGTH, Json

MOST_WHO: int = 200


class WorkloadRow(SQLModel, table=True):
    """A question under a name; every write raises its version by one."""

    __tablename__: ClassVar[str] = "workloads"
    __table_args__ = (CheckConstraint("version > 0", name="version_positive"),)

    name: str = Field(primary_key=True, max_length=ID_LENGTH)
    version: int
    question: Json = Field(sa_type=JSON)
    changed_at: datetime = Field(sa_type=DateTime(timezone=True))


class WorkloadChangeRow(SQLModel, table=True):
    """One write: who made it, when, and what stood there before and after. Rows are added, never changed."""

    __tablename__: ClassVar[str] = "workload_changes"

    workload: str = Field(primary_key=True, max_length=ID_LENGTH)  # no foreign key: it outlives the workload
    version: int = Field(primary_key=True)
    changed_at: datetime = Field(sa_type=DateTime(timezone=True))
    changed_by: str = Field(max_length=MOST_WHO)
    before: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))
    after: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))
