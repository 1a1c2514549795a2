"""remember what was seeded."""

import sqlalchemy as sa
from alembic import op

revision: str = "3b7c1f0a9d52"
down_revision: str | None = "e414fa53dc45"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    op.create_table(
        "seeded_entries",
        sa.Column("kind", sa.String(length=8), nullable=False),
        sa.Column("entry_id", sa.String(length=128), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.CheckConstraint("kind IN ('model', 'gpu', 'offer')", name=op.f("ck_seeded_entries_kind_known")),
        sa.PrimaryKeyConstraint("kind", "entry_id", name=op.f("pk_seeded_entries")),
    )


def downgrade() -> None:
    op.drop_table("seeded_entries")
