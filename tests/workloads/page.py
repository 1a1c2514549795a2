"""The page of examples, as values: what the tests replay is what `make examples` writes.

    python -m tests.workloads.page FILE

writes the page; a test fails where the page at hand differs.
"""

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import yaml

SERVER: Final = "http://sizer:8000"
HOST: Final = SERVER.removeprefix("http://")
PROMETHEUS: Final = "http://prometheus:9090"
WORKLOAD: Final = "chat"
ASKED: Final = f"/workloads/{WORKLOAD}"
KEY_SHOWN: Final = "sizer_..."
QUESTIONS_FILE: Final = "questions.csv"
DEPLOYED: Final = {"model": "llama-3.3-70b", "gpu": "h100", "weight_format": "fp8", "tensor_parallel_size": 2}
LENGTHS: Final = {"input_tokens": 2000, "output_tokens": 500}
SMALL: Final = {
    "model": "llama-3.1-8b", "gpu": "h100", "concurrent_requests": 8, "input_tokens": 1000, "output_tokens": 100,
}  # fmt: skip
LARGE: Final = {
    "model": "llama-3.3-70b", "gpu": "h200", "concurrent_requests": 64, "input_tokens": 5500, "output_tokens": 500,
}  # fmt: skip


class Block(Protocol):
    """What is pasted somewhere."""

    @property
    def language(self) -> str:
        """Return its language, as Markdown names it."""

    @property
    def text(self) -> str:
        """Return what is pasted."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A document for a cluster or a monitor."""

    document: Mapping[str, Any]
    language: str = "yaml"

    @property
    def text(self) -> str:
        """Return it as YAML."""
        return yaml.safe_dump(dict(self.document), sort_keys=False, width=200)


@dataclass(frozen=True, kw_only=True)
class Body:
    """A document that is sent."""

    document: Mapping[str, Any]
    language: str = "json"

    @property
    def text(self) -> str:
        """Return it on one line."""
        return json.dumps(self.document) + "\n"


@dataclass(frozen=True, kw_only=True)
class Pasted:
    """Lines as they are."""

    language: str
    lines: Sequence[str]

    @property
    def text(self) -> str:
        """Return them one below the other."""
        return "\n".join(self.lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of a file of comma-separated values."""

    rows: Sequence[Mapping[str, object]]
    language: str = "csv"

    @property
    def text(self) -> str:
        """Return the columns, and each row."""
        lines = [",".join(self.rows[0]), *(",".join(str(value) for value in row.values()) for row in self.rows)]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, kw_only=True)
class Section:
    """One place it is asked from: words, and blocks by name; words between blocks are under None."""

    title: str
    words: str
    parts: Sequence[tuple[str, Block] | str] = field(default_factory=tuple)


def url(path: str, **query: object) -> str:
    """Return an address of the service."""
    return f"{SERVER}{path}" + (f"?{urlencode(query)}" if query else "")


def curl(address: str, body: object = None, *, method: str | None = None, options: str = "") -> str:
    """Return a line of curl."""
    words = ["curl", *(["-X", method] if method else []), *(["--json", f"'{json.dumps(body)}'"] if body else [])]
    return " ".join([*words, *([options] if options else []), f"'{address}'"])


def flags(asked: Mapping[str, object]) -> str:
    """Return a question's fields as options of a command."""
    return " ".join(f"--{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in asked.items())


def page() -> str:
    """Return the page."""
    from tests.workloads.page_sections import INTRODUCTION, SECTIONS  # noqa: PLC0415 - made of this module's values

    lines = [INTRODUCTION]
    for section in SECTIONS:
        lines += [f"\n## {section.title}\n", f"{section.words}\n"]
        for part in section.parts:
            lines.append(f"{part}\n" if isinstance(part, str) else f"```{part[1].language}\n{part[1].text}```\n")
    return "\n".join(lines).replace("\n\n\n", "\n\n").rstrip() + "\n"


def block(name: str) -> Any:
    """Return the block of a name: what a test that names it proves."""
    return blocks()[name]


def blocks() -> dict[str, Block]:
    """Return every block of the page by its name."""
    from tests.workloads.page_sections import SECTIONS  # noqa: PLC0415 - as above

    return {part[0]: part[1] for section in SECTIONS for part in section.parts if not isinstance(part, str)}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(page(), encoding="utf-8")
