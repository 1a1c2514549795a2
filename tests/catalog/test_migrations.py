"""Migrations run up, down and up again on both databases, match the tables, and leave the version before able to work."""

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Engine, inspect, text

from service.catalog.database import alembic_config, migrate, reading, writing
from service.catalog.reading import read_catalog
from service.catalog.seed_files import seed_entries
from service.catalog.store import current_version, raise_revision
from service.catalog.tables import metadata

FIRST = "e414fa53dc45"
# What the version before wrote, statement by statement: the columns it knew.
EARLIER_GPU = """
    INSERT INTO gpus (id, name, vendor, architecture, compute_capability, memory_bytes, memory_bandwidth_bytes_per_s,
                      gpus_per_node, scale_up_domain_gpus, scale_up_kind, figures)
    VALUES (:id, 'Some GPU', 'nvidia', 'hopper', '9.0', 85520809984, 3350000000000, 8, 8, 'nvlink',
            '{"memory_bytes": {"value": 85520809984, "source": {"url": "https://x.org", "checked_on": "2026-11-21"}},
              "memory_bandwidth_bytes_per_s":
                {"value": 3350000000000, "source": {"url": "https://x.org", "checked_on": "2026-11-21"}}}')
"""
EARLIER_OFFER = """
    INSERT INTO offers (id, provider, instance_type, region, gpu_id, gpu_count, usd_per_hour, purchase, as_of, source_url,
                        source_checked_on)
    VALUES ('an-offer', 'aws', 'p5.48xlarge', 'us-east-1', 'h100-sxm-80gb', 8, 55.04, 'on-demand', '2026-11-01',
            'https://x.org', '2026-11-21')
"""
COMMUNITY_OFFER = EARLIER_OFFER.replace("an-offer", "another").replace(
    "'aws', 'p5.48xlarge'", "'runpod', 'community-h100-sxm'"
)


def downgrade(engine: Engine, revision: str) -> None:
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)


def run(engine: Engine, statement: str, **values: object) -> None:
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def test_there_is_one_head() -> None:
    assert len(ScriptDirectory.from_config(alembic_config()).get_heads()) == 1


def test_up_down_and_up_again(empty_database: Engine) -> None:
    migrate(empty_database)
    downgrade(empty_database, "base")
    assert set(inspect(empty_database).get_table_names()) <= {"alembic_version"}

    migrate(empty_database)

    assert set(metadata.tables) <= set(inspect(empty_database).get_table_names())


def test_the_schema_is_what_the_tables_say(database: Engine) -> None:
    with database.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)

    assert differences == []


def test_rows_of_the_version_before_go_up_and_come_down(empty_database: Engine) -> None:
    migrate(empty_database, FIRST)
    run(empty_database, EARLIER_GPU, id="h100-sxm-80gb")
    run(empty_database, "INSERT INTO catalog_revision (id, revision) VALUES (1, 5)")
    run(empty_database, EARLIER_OFFER)

    migrate(empty_database)
    with reading(empty_database) as session:
        [gpu] = read_catalog(session).entries.gpus
        assert current_version(session) == (None, 5)
    downgrade(empty_database, FIRST)

    assert gpu.measured_as == "h100_sxm"
    with empty_database.connect() as connection:
        row = connection.execute(text("SELECT * FROM gpus")).mappings().one()
        assert connection.execute(text("SELECT count(*) FROM offers")).scalar_one() == 1
    assert row["id"] == "h100-sxm-80gb"
    assert "measured_as" not in row


def test_the_version_before_goes_on_writing_beside_this_one(database: Engine) -> None:
    run(database, "INSERT INTO catalog_revision (id, revision) VALUES (1, 1)")
    run(database, EARLIER_GPU, id="a-new-one")
    with writing(database) as session, session.begin():
        raise_revision(session)
    run(database, "UPDATE catalog_revision SET revision = revision + 1 WHERE id = 1")

    with reading(database) as session:
        assert [it.id for it in read_catalog(session).entries.gpus] == ["a-new-one"]
        lineage, revision = current_version(session)
    assert lineage
    assert revision == 3


def test_every_gpu_with_measured_kernels_of_the_seed_files_is_filled_in(empty_database: Engine) -> None:
    """An upgraded database loses no measured kernels, though nobody seeds it again."""
    measured = {gpu.id: gpu.measured_as for gpu in seed_entries()[1] if gpu.measured_as}
    migrate(empty_database, FIRST)
    for gpu_id in measured:
        run(empty_database, EARLIER_GPU, id=gpu_id)

    migrate(empty_database)

    with reading(empty_database) as session:
        assert {it.id: it.measured_as for it in read_catalog(session).entries.gpus} == measured


def test_offers_on_third_party_hosts_are_told_from_the_others(empty_database: Engine) -> None:
    """An upgraded database recommends no community host unasked, though nobody seeds it again."""
    migrate(empty_database, FIRST)
    run(empty_database, EARLIER_GPU, id="h100-sxm-80gb")
    run(empty_database, EARLIER_OFFER)
    run(empty_database, COMMUNITY_OFFER)

    migrate(empty_database)

    with reading(empty_database) as session:
        tiers = {it.id: (it.tier, it.commitment_months) for it in read_catalog(session).entries.offers}
    assert tiers == {"an-offer": ("secure", None), "another": ("community", None)}
