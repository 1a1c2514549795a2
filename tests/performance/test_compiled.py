"""Compiled code where nothing can be kept on disk, and where nothing may be slow to start."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(code: str, **environment: str) -> str:
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_command_line_and_the_service_load_no_compiler() -> None:
    loaded = "import sys, service.cli, service.main; print([name for name in ('numba', 'aiconfigurator_core') if name in sys.modules])"

    assert run(loaded) == "[]"


def test_a_function_compiles_where_no_folder_can_be_written_to(tmp_path: Path) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    code = (
        "from service.engine.time.compiled import compiled\n"
        "double = compiled(eval('lambda x: 2 * x'))\n"  # of no file, so that nothing can be kept beside it
        "print(double(21))"
    )

    assert run(code, NUMBA_CACHE_DIR=str(in_the_way / "cache"), HOME=str(in_the_way)) == "42"


def test_plain_python_is_left_plain_when_asked() -> None:
    code = "from service.engine.time.interpolation import curve_at; print(type(curve_at).__name__)"

    assert run(code, NUMBA_DISABLE_JIT="1") == "function"
