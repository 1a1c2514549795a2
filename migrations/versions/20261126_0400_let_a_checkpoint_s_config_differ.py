"""let a checkpoint state what its own config says otherwise."""

import sqlalchemy as sa
from alembic import op

revision: str = "7e3a5c91d0b4"
down_revision: str | None = "b84d0f3a6c21"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    # Nullable, so that the version before may go on writing.
    op.add_column("checkpoints", sa.Column("config", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("checkpoints", "config")
