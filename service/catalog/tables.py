"""The catalog's tables; seen by nobody outside this package except migrations and tests."""

from datetime import date, datetime
from typing import Any, ClassVar

from sqlalchemy import JSON, BigInteger, CheckConstraint, DateTime, Index, MetaData
from sqlmodel import Field, Relationship, SQLModel

NAMING_CONVENTION = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}
SQLModel.metadata.naming_convention = NAMING_CONVENTION
metadata: MetaData = SQLModel.metadata

ID_LENGTH = 128
URL_LENGTH = 2048
Json = dict[str, Any]


def _aliases_of(table: str, kind: str) -> Any:
    """Return the aliases of a model or GPU, to read; two kinds share the table, so that no cascade may write it."""
    joined = f"and_(AliasRow.kind == '{kind}', foreign(AliasRow.target_id) == {table}.id)"
    return Relationship(sa_relationship_kwargs={"primaryjoin": joined, "viewonly": True})


class Sourced:
    """A row's source, in the shape an entry has it."""

    source_url: Any
    source_checked_on: Any

    @property
    def source(self) -> Json:
        """Return where it is published, and when that was looked at."""
        return {"url": self.source_url, "checked_on": self.source_checked_on}


class RevisionRow(SQLModel, table=True):
    """One row: the catalog's revision, one higher after every write."""

    __tablename__: ClassVar[str] = "catalog_revision"
    __table_args__ = (CheckConstraint("id = 1", name="single_row"),)

    id: int = Field(primary_key=True)
    revision: int = Field(sa_type=BigInteger)
    lineage: str | None = Field(default=None, max_length=36)  # tells a database made anew from the one before


class ModelRow(SQLModel, Sourced, table=True):
    """A model, as its published config states it."""

    __tablename__: ClassVar[str] = "models"

    id: str = Field(primary_key=True, max_length=ID_LENGTH)
    name: str = Field(max_length=200)
    hf_id: str | None = Field(default=None, max_length=200)
    publisher: str | None = Field(default=None, max_length=200)
    config: Json = Field(sa_type=JSON)
    num_parameters: int | None = Field(default=None, sa_type=BigInteger)
    source_url: str = Field(max_length=URL_LENGTH)
    source_checked_on: date

    checkpoint_rows: list["CheckpointRow"] = Relationship(cascade_delete=True)
    alias_rows: list["AliasRow"] = _aliases_of("ModelRow", "model")

    @property
    def checkpoints(self) -> list["CheckpointRow"]:
        """Return the model's own checkpoint first, the others by format, in the order they were stated in."""
        return sorted(
            self.checkpoint_rows, key=lambda row: (not row.is_default, row.weight_format, row.position or 0, row.hf_id)
        )

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return its further names, in lower case, without the hub's own."""
        return tuple(sorted(row.alias for row in self.alias_rows if row.alias != (self.hf_id or "").lower()))


class CheckpointRow(SQLModel, Sourced, table=True):
    """One published weight format of a model."""

    __tablename__: ClassVar[str] = "checkpoints"
    __table_args__ = (CheckConstraint("weight_bytes IS NULL OR weight_bytes > 0", name="weight_bytes_positive"),)

    model_id: str = Field(primary_key=True, foreign_key="models.id", ondelete="CASCADE", max_length=ID_LENGTH)
    weight_format: str = Field(primary_key=True, max_length=16)
    hf_id: str = Field(primary_key=True, max_length=200)
    is_default: bool
    position: int | None = Field(default=None)  # in the model's list: of one format, the first is meant
    quantization_config: Json | None = Field(default=None, sa_type=JSON)
    config: Json | None = Field(default=None, sa_type=JSON)  # what its own config.json states otherwise
    kv_cache_dtype: str | None = Field(default=None, max_length=16)
    weight_bytes: int | None = Field(default=None, sa_type=BigInteger)
    source_url: str = Field(max_length=URL_LENGTH)
    source_checked_on: date


class GpuRow(SQLModel, table=True):
    """A GPU type: what its driver reports and its data sheet prints."""

    __tablename__: ClassVar[str] = "gpus"
    __table_args__ = (
        CheckConstraint("memory_bytes > 0", name="memory_bytes_positive"),
        CheckConstraint("gpus_per_node > 0", name="gpus_per_node_positive"),
        CheckConstraint("scale_up_domain_gpus > 0", name="scale_up_domain_positive"),
    )

    id: str = Field(primary_key=True, max_length=ID_LENGTH)
    name: str = Field(max_length=200)
    vendor: str = Field(max_length=32)
    architecture: str = Field(max_length=32)
    compute_capability: str | None = Field(default=None, max_length=8)
    memory_bytes: int = Field(sa_type=BigInteger)
    memory_bandwidth_bytes_per_s: int = Field(sa_type=BigInteger)
    gpus_per_node: int
    scale_up_domain_gpus: int
    scale_up_kind: str = Field(max_length=32)
    figures: Json = Field(sa_type=JSON)  # every figure: value, as printed, source, date
    measured_as: str | None = Field(default=None, max_length=32)

    alias_rows: list["AliasRow"] = _aliases_of("GpuRow", "gpu")

    @property
    def aliases(self) -> tuple[str, ...]:
        """Return its further names, in lower case."""
        return tuple(sorted(row.alias for row in self.alias_rows))


class OfferRow(SQLModel, Sourced, table=True):
    """What a provider asks for an instance type, on a date."""

    __tablename__: ClassVar[str] = "offers"
    __table_args__ = (
        CheckConstraint("usd_per_hour > 0", name="usd_per_hour_positive"),
        CheckConstraint("gpu_count > 0", name="gpu_count_positive"),
    )

    id: str = Field(primary_key=True, max_length=ID_LENGTH)
    provider: str = Field(max_length=64, index=True)
    instance_type: str = Field(max_length=128)
    region: str = Field(max_length=64)
    gpu_id: str = Field(foreign_key="gpus.id", ondelete="CASCADE", max_length=ID_LENGTH, index=True)
    gpu_count: int
    usd_per_hour: float
    purchase: str = Field(max_length=32)
    tier: str = Field(default="secure", max_length=16, sa_column_kwargs={"server_default": "secure"})
    commitment_months: int | None = Field(default=None)
    as_of: date
    source_url: str = Field(max_length=URL_LENGTH)
    source_checked_on: date

    @property
    def gpu(self) -> str:
        """Return the id of the GPU, under the name an entry has for it."""
        return self.gpu_id


class AliasRow(SQLModel, table=True):
    """Another name of a model or GPU, lower case; ids are found without one."""

    __tablename__: ClassVar[str] = "aliases"
    __table_args__ = (CheckConstraint("kind IN ('model', 'gpu')", name="kind_known"),)

    kind: str = Field(primary_key=True, max_length=8)
    alias: str = Field(primary_key=True, max_length=200)
    target_id: str = Field(max_length=ID_LENGTH, index=True)


class SeededRow(SQLModel, table=True):
    """What the seed files last put into the catalog: an entry that differs from it was written by somebody else."""

    __tablename__: ClassVar[str] = "seeded_entries"
    __table_args__ = (CheckConstraint("kind IN ('model', 'gpu', 'offer')", name="kind_known"),)

    kind: str = Field(primary_key=True, max_length=8)
    entry_id: str = Field(primary_key=True, max_length=ID_LENGTH)
    content_hash: str = Field(max_length=64)


class CatalogChangeRow(SQLModel, table=True):
    """One entry that a write changed: who, when, what stood there before and after. Rows are added, never changed."""

    __tablename__: ClassVar[str] = "catalog_changes"
    __table_args__ = (
        CheckConstraint("kind IN ('model', 'gpu', 'offer')", name="kind_known"),
        Index(None, "kind", "entry_id"),
    )

    number: int | None = Field(default=None, primary_key=True)
    revision: int = Field(sa_type=BigInteger)  # that has the change
    kind: str = Field(max_length=8)
    entry_id: str = Field(max_length=ID_LENGTH)  # no foreign key: it outlives the entry
    changed_at: datetime = Field(sa_type=DateTime(timezone=True))
    changed_by: str = Field(max_length=200)
    before: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))
    after: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))


class MeasurementRow(SQLModel, table=True):
    """What somebody measured of a model on a GPU: figures with their lines, and the question they answer."""

    __tablename__: ClassVar[str] = "measurements"

    id: str = Field(primary_key=True, max_length=ID_LENGTH)
    what: str = Field(max_length=100)
    kind: str = Field(max_length=16)
    model: str = Field(max_length=ID_LENGTH)  # no foreign keys: it says nothing while the catalog lacks either
    gpu: str = Field(max_length=ID_LENGTH)
    question: Json = Field(sa_type=JSON)
    figures: Json = Field(sa_type=JSON)
    stored_at: datetime = Field(sa_type=DateTime(timezone=True))


class MeasurementChangeRow(SQLModel, table=True):
    """One write: who made it, when, and what stood there before and after. Rows are added, never changed."""

    __tablename__: ClassVar[str] = "measurement_changes"

    measurement: str = Field(primary_key=True, max_length=ID_LENGTH)
    number: int = Field(primary_key=True)
    changed_at: datetime = Field(sa_type=DateTime(timezone=True))
    changed_by: str = Field(max_length=200)
    before: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))
    after: Json | None = Field(default=None, sa_type=JSON(none_as_null=True))
