"""How large the files and functions of the service are, beside how large they were.

    python -m benchmarks.figures

A file's lines are all it has; a function's are those of its body, without its docstring.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

SERVICE: Final = Path(__file__).resolve().parents[1] / "service"
# The same figures of commit a9aece5, whose rooms were filed by operation.
BEFORE: Final = {
    "files": "112", "lines": "19,313", "file median": "158", "file p95": "402", "file max": "579",
    "functions": "1,049", "body median": "6", "body p95": "25", "body max": "75",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Lines of files, and of the bodies of functions."""

    files: tuple[tuple[int, str], ...]  # lines, path
    bodies: tuple[tuple[int, str], ...]  # lines, path and name

    def named(self) -> dict[str, str]:
        """Return each figure by its name, as it is printed."""
        files, bodies = [lines for lines, _ in self.files], [lines for lines, _ in self.bodies]
        return {
            "files": f"{len(files):,}",
            "lines": f"{sum(files):,}",
            "file median": f"{median(files):g}",
            "file p95": str(percentile(files, 95)),
            "file max": str(max(files)),
            "functions": f"{len(bodies):,}",
            "body median": f"{median(bodies):g}",
            "body p95": str(percentile(bodies, 95)),
            "body max": str(max(bodies)),
        }

    def text(self) -> str:
        """Return the figures beside those before, and the largest of each."""
        now = self.named()
        rows = [f"{name:12} {BEFORE[name]:>8} {value:>8}" for name, value in now.items()]
        largest = [f"  {lines:4} {name}" for lines, name in (*self.files[:5], *self.bodies[:5])]
        return "\n".join([f"{'':12} {'a9aece5':>8} {'now':>8}", *rows, "largest files and bodies", *largest])


def percentile(values: Sequence[int], percent: int) -> int:
    """Return a percentile by nearest rank.

    >>> percentile(range(1, 101), 95)
    95
    """
    return sorted(values)[-(-percent * len(values) // 100) - 1]


def measured(root: Path = SERVICE) -> Figures:
    """Return the figures of every file that says something."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    files = [(len(text.splitlines()), str(path.relative_to(root))) for path, text in texts.items() if text.strip()]
    bodies = [
        (lines, f"{path.relative_to(root)} {name}")
        for path, text in texts.items()
        for name, lines in bodies_of(ast.parse(text))
    ]
    return Figures(files=tuple(sorted(files, reverse=True)), bodies=tuple(sorted(bodies, reverse=True)))


def bodies_of(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield every function with the lines of its body; 0 of a mere docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            statements = node.body[1:] if ast.get_docstring(node) is not None else node.body
            first, last = (statements[0].lineno, statements[-1].end_lineno or 0) if statements else (1, 0)
            yield node.name, last - first + 1


if __name__ == "__main__":
    print(measured().text())
