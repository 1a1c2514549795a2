"""keep measurements."""

import sqlalchemy as sa
from alembic import op

revision: str = "2c9f51b7e0d4"
down_revision: str | None = "7e1a4c92d5b3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "measurements",
        sa.Column("id", sa.String(length=128), nullable=False),
        sa.Column("what", sa.String(length=100), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("model", sa.String(length=128), nullable=False),
        sa.Column("gpu", sa.String(length=128), nullable=False),
        sa.Column("question", sa.JSON(), nullable=False),
        sa.Column("figures", sa.JSON(), nullable=False),
        sa.Column("stored_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_measurements")),
    )
    op.create_table(
        "measurement_changes",
        sa.Column("measurement", sa.String(length=128), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.String(length=200), nullable=False),
        sa.Column("before", sa.JSON(), nullable=True),
        sa.Column("after", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("measurement", "number", name=op.f("pk_measurement_changes")),
    )


def downgrade() -> None:
    op.drop_table("measurement_changes")
    op.drop_table("measurements")
