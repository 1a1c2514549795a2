"""tell the tier of offers."""

import sqlalchemy as sa
from alembic import op

revision: str = "a3c85d1f7e42"
down_revision: str | None = "5b7d0c3e9a62"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("SET LOCAL lock_timeout = '5s'")
    # With a default of the database's own, so that the version before may go on writing.
    op.add_column("offers", sa.Column("tier", sa.String(length=16), nullable=False, server_default="secure"))
    op.add_column("offers", sa.Column("commitment_months", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("offers", "commitment_months")
    op.drop_column("offers", "tier")
