"""keep the order of checkpoints."""

import sqlalchemy as sa
from alembic import op

revision: str = "5b7d0c3e9a62"
down_revision: str | None = "f1d94a3e6b07"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    # Nullable, so that the version before may go on writing.
    op.add_column("checkpoints", sa.Column("position", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("checkpoints", "position")
