"""A new attention variant fails the type check wherever it is forgotten."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIANT = '''
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeUpAttention:
    """A variant that no rule knows."""

    num_heads: int


RecurrentMixer ='''
FORGETFUL = {"service/engine/memory/specs.py", "service/engine/memory/matrices.py", "service/engine/fleet/layouts.py"}


def test_every_module_that_must_know_a_variant_is_named_by_the_type_check(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "service", tmp_path / "service", ignore=shutil.ignore_patterns("__pycache__", "data"))
    module = tmp_path / "service" / "engine" / "layers" / "architecture.py"
    text = module.read_text(encoding="utf-8").replace("\nRecurrentMixer =", VARIANT, 1)
    module.write_text(
        text.replace("Attention = GroupedQ", "Attention = MadeUpAttention | GroupedQ", 1), encoding="utf-8"
    )

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "service/engine"],
        check=False, capture_output=True, text=True, cwd=tmp_path,
    )  # fmt: skip

    forgotten = {line.split(":")[0] for line in done.stdout.splitlines() if "MadeUpAttention" in line}
    assert forgotten == FORGETFUL, done.stdout
