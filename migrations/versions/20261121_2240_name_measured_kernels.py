"""name measured kernels."""

import sqlalchemy as sa
from alembic import op

revision: str = "c05a9e7f4b18"
down_revision: str | None = "8d2e64b1c7f3"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    # Nullable, so that the version before may go on writing.
    op.add_column("gpus", sa.Column("measured_as", sa.String(length=32), nullable=True))


def downgrade() -> None:
    # Not in a batch: SQLite would copy the table and drop the old one, and its offers with it.
    op.drop_column("gpus", "measured_as")
