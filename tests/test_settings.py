"""Settings that cannot be used are told by name, without their values; what is none is told as well."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from service.cli import main
from service.settings import Settings, unknown_settings

WRONG = {
    "SIZER_QUESTION_SECONDS": ("abc", "should be a number"),
    "SIZER_WRITE_SECONDS": ("-1", "should be at least 1"),
    "SIZER_JSON_LOG": ("maybe", "should be true or false"),
    "SIZER_DATABASE_URL": ("mysql://who:geheim@there/x", "should begin with sqlite:// or postgresql+psycopg://"),
    "SIZER_OIDC_ISSUER": ("id.example", "should be an address"),
    "SIZER_PUBLIC_URL": ("not a url", "should be an address"),
    "SIZER_SNAPSHOT_PATH": ("", "should name a file"),
    "SIZER_PROMETHEUS_URLS": ("http://here:9090,ftp://geheim", "should be an address"),
}


def test_every_wrong_setting_is_told_in_a_line_without_its_value() -> None:
    environment = {**os.environ, **{name: value for name, (value, _) in WRONG.items()}}

    ran = subprocess.run(
        [sys.executable, "-c", "from service.cli import main; main()", "serve"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == 2
    lines = dict(line.split(": ", 1) for line in ran.stderr.splitlines() if line.startswith("SIZER_"))
    assert lines.keys() == WRONG.keys()
    for name, (_, sentence) in WRONG.items():
        assert lines[name].startswith(sentence)
    assert "geheim" not in ran.stderr + ran.stdout
    assert "Traceback" not in ran.stderr


def test_what_may_be_none_is_so_where_it_is_left_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIZER_TABLES_PATH", "")
    monkeypatch.setenv("SIZER_KEY_REQUESTS_PER_S", "")

    settings = Settings()

    assert (settings.tables_path, settings.key_requests_per_s) == (None, None)


def test_a_variable_that_is_no_setting_is_told_with_the_one_that_may_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SIZER_")]:
        monkeypatch.delenv(name)
    for name in (
        "SIZER_API_KEY",
        "SIZER_KEY",
        "SIZER_SERVER",
        "SIZER_SNAPSHOT_PATH",
        "SIZER_SERVICE_HOST",
        "SIZER_PORT_8000_TCP",
        "SIZER_WHAT_IS_THIS",
    ):
        monkeypatch.setenv(name, "geheim")

    assert unknown_settings() == ("SIZER_API_KEY is no setting; SIZER_API_KEYS is", "SIZER_WHAT_IS_THIS is no setting")


@pytest.mark.parametrize(
    ("command", "database_url", "told"),
    [
        ("migrate", "sqlite:////proc/nowhere/s.sqlite3", "/proc/nowhere: No such file or directory"),
        ("seed", "sqlite:////proc/nowhere/s.sqlite3", "unable to open database file; `sizer migrate` makes it where"),
        ("seed", "sqlite:///{folder}/empty", "no such table: catalog_revision; `sizer migrate` brings the schema"),
        ("migrate", "postgresql+psycopg://who:geheim@127.0.0.1:1/x", "Connection refused"),
        ("migrate", "postgresql+psycopg://who:geheim@there:abc/x", "user:password@host:port/name"),
    ],
)
def test_a_command_that_cannot_use_its_database_says_so_in_a_line(  # an operator's typing mistakes
    command: str,
    database_url: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").touch()
    monkeypatch.setenv("SIZER_DATABASE_URL", database_url.format(folder=tmp_path))
    monkeypatch.setenv("SIZER_DATABSE_URL", "geheim")
    monkeypatch.setattr(sys, "argv", ["sizer", command])

    with pytest.raises(SystemExit) as ended:
        main()

    shown = capsys.readouterr()
    assert (ended.value.code, shown.out) == (2, "")
    unknown, line = shown.err.splitlines()
    assert unknown == "SIZER_DATABSE_URL is no setting; SIZER_DATABASE_URL is"
    assert told in line
    assert "geheim" not in shown.err
