"""fill in the tier of offers."""

import sqlalchemy as sa
from alembic import op

revision: str = "d60b2e94c8a1"
down_revision: str | None = "a3c85d1f7e42"
branch_labels = None
depends_on = None


def upgrade() -> None:
    offers = sa.table(
        "offers",
        sa.column("provider", sa.String()),
        sa.column("instance_type", sa.String()),
        sa.column("tier", sa.String()),
    )
    # The version before told RunPod's third-party hosts by the name of the instance alone.
    op.execute(
        offers.update()
        .where(offers.c.provider == "runpod", offers.c.instance_type.like("community-%"))
        .values(tier="community")
    )


def downgrade() -> None:
    pass
