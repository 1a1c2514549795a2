"""name the catalog's lineage."""

import sqlalchemy as sa
from alembic import op

revision: str = "8d2e64b1c7f3"
down_revision: str | None = "3b7c1f0a9d52"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    # Nullable, so that the version before may go on writing; the next write of this one fills it in.
    op.add_column("catalog_revision", sa.Column("lineage", sa.String(length=36), nullable=True))


def downgrade() -> None:
    op.drop_column("catalog_revision", "lineage")
