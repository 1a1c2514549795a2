"""keep who changed the catalog."""

import sqlalchemy as sa
from alembic import op

revision: str = "b84d0f3a6c21"
down_revision: str | None = "2c9f51b7e0d4"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "catalog_changes",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("entry_id", sa.String(length=128), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.CheckConstraint("kind IN ('model', 'gpu', 'offer')", name=op.f("ck_catalog_changes_kind_known")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_catalog_changes")),
    )
    op.create_index(op.f("ix_catalog_changes_kind_entry_id"), "catalog_changes", ["kind", "entry_id"])


def downgrade() -> None:
    op.drop_index(op.f("ix_catalog_changes_kind_entry_id"), table_name="catalog_changes")
    op.drop_table("catalog_changes")
