"""fill in measured kernels."""

import sqlalchemy as sa
from alembic import op

revision: str = "f1d94a3e6b07"
down_revision: str | None = "c05a9e7f4b18"
branch_labels = None
depends_on = None

# The GPUs that the version before knew by their ids.
MEASURED_AS = {
    "h100-sxm-80gb": "h100_sxm",
    "h200-sxm-141gb": "h200_sxm",
    "b200-sxm-180gb": "b200_sxm",
    "b300-sxm-288gb": "b300_sxm",
    "gb200-nvl72": "gb200",
    "gb300-nvl72": "gb300",
    "a100-sxm-80gb": "a100_sxm",
    "l40s": "l40s",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
    "arc-pro-b60": "b60",
}


def upgrade() -> None:
    gpus = sa.table("gpus", sa.column("id", sa.String()), sa.column("measured_as", sa.String()))
    for gpu_id, name in MEASURED_AS.items():
        op.execute(gpus.update().where(gpus.c.id == gpu_id).values(measured_as=name))


def downgrade() -> None:
    pass
