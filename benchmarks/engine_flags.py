"""Read the flags of serving engines from their source trees, and write the table that commands are checked against.

    python -m benchmarks.engine_flags vllm=0.33.0=DIR sglang=0.5.23=DIR tensorrt-llm=1.2=FILE ... > \
        service/catalog/data/engine_flags.yaml

DIR holds the unpacked wheel (`pip download --no-deps vllm==0.33.0`, then `unzip`), FILE is TensorRT-LLM's
`tensorrt_llm/commands/serve.py`. Nothing of the engine is imported: no GPU and no PyTorch is needed.

The committed rows of TensorRT-LLM are those of `serve.py` at commit 00209af (1.2), and with `--kv_cache_dtype`, which
the help of 1.3 prints (pull request 11487). Of 1.3 only candidates are released by November 2026.
"""

import ast
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

FILES = {
    "vllm": (
        "vllm/engine/arg_utils.py",
        "vllm/entrypoints/openai/cli_args.py",
        "vllm/entrypoints/common/cli_args.py",
        "vllm/entrypoints/launchers/cli_args.py",
        "vllm/entrypoints/cli/serve.py",
    ),
    "sglang": ("sglang/srt/server_args.py", *(f"sglang/srt/arg_groups/fields/{it}.py" for it in (
        "device", "disagg", "exec_", "lora", "memory", "mm", "model", "observability", "parallel", "schedule",
        "serving", "spec",
    ))),
}  # fmt: skip
WORDED = ("add_argument", "option")  # argparse, click
UNSTATED = {"tensorrt-llm": "1.2"}  # the newest released, where newer flags were read


def flags_of(engine: str, place: Path) -> set[str]:
    """Return every long flag that the sources register."""
    files = [place / name for name in FILES[engine]] if engine in FILES else [place]
    return {flag for file in files if file.is_file() for flag in _registered(ast.parse(file.read_text("utf-8")))}


def _registered(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in WORDED:
            yield from _flags(node.args)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and _is_annotated(node.annotation):
            yield from _of_field(node.target.id, node.annotation)
        elif isinstance(node, ast.ClassDef) and node.name.endswith("FrontendArgs"):  # vLLM: a flag for each field
            fields = [
                it.target.id for it in node.body if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
            ]
            yield from (f"--{name.replace('_', '-')}" for name in fields)


def _is_annotated(annotation: ast.expr) -> bool:
    """Return whether a field is written `A[type, help]`, as SGLang registers flags."""
    return (
        isinstance(annotation, ast.Subscript) and isinstance(annotation.value, ast.Name) and annotation.value.id == "A"
    )


def _of_field(name: str, annotation: ast.expr) -> Iterator[str]:
    """Yield the flag of a field, or the name it is given, and its aliases."""
    keywords = {
        word.arg: word.value for node in ast.walk(annotation) if isinstance(node, ast.Call) for word in node.keywords
    }
    named = list(_flags([keywords["cli_name"]])) if "cli_name" in keywords else []
    yield from named or [f"--{name.replace('_', '-')}"]
    aliases = keywords.get("aliases")
    if isinstance(aliases, ast.List):
        yield from _flags(aliases.elts)


def _flags(words: Iterable[ast.expr]) -> Iterator[str]:
    for word in words:
        if isinstance(word, ast.Constant) and isinstance(word.value, str) and word.value.startswith("--"):
            yield word.value


def _spans(versions: list[str], held: set[str]) -> str:
    """Return the versions that have a flag, as spans of those that were read."""
    runs = [(has, list(run)) for has, run in groupby(versions, key=lambda version: version in held)]
    return ", ".join(f"{run[0]}..{run[-1]}" for has, run in runs if has)


def main(stated: list[str]) -> None:
    """Print the table."""
    read: dict[str, dict[str, set[str]]] = {}
    for engine, version, place in (each.split("=", 2) for each in stated):
        read.setdefault(engine, {})[version] = flags_of(engine, Path(place))
    print("# The long flags of each engine, with the versions that have them: spans of the versions read.")
    print("# Written by `python -m benchmarks.engine_flags`; see there for how to read further versions.")
    for engine, tables in read.items():
        versions = sorted(tables, key=lambda version: [int(part) for part in version.split(".")])
        print(f"{engine}:\n  versions: [{', '.join(repr(version) for version in versions)}]")
        if engine in UNSTATED:
            print(f"  unstated: {UNSTATED[engine]!r}")
        print("  flags:")
        for flag in sorted(set().union(*tables.values())):
            held = {version for version in versions if flag in tables[version]}
            print(f'    {flag}: "{_spans(versions, held)}"')


if __name__ == "__main__":
    main(sys.argv[1:])
