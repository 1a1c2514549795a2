"""Every family is a record in one file: who speaks for a class, and who may know a family's name."""

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.engine.errors import UnsupportedModelError
from service.engine.families import REGISTRY, parse_architecture
from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family
from service.engine.families.parts.wrappers import always
from service.engine.families.registry import ClaimedTwiceError, IncompleteFamilyError, collected, published
from service.engine.inputs import Layout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters

ROOT = Path(__file__).resolve().parents[3]
ENGINE = ROOT / "service" / "engine"
FAMILIES = ENGINE / "families"
PARTS = sorted((FAMILIES / "parts").glob("*.py"))
NAMELESS = [
    path
    for path in sorted((ROOT / "service").rglob("*.py"))
    if path.parent != FAMILIES or path.stem in ("__init__", "registry")
]
TOY_CONFIG: dict[str, Any] = {
    "architectures": ["ToyForCausalLM"],
    "width": 64,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 128,
    "max_position_embeddings": 512,
}
TOY_FILE = '''"""A family of nobody's."""

from service.engine.families.parts.attention import full_only
from service.engine.families.parts.family import Family

FAMILIES = (Family(classes=("ToyForCausalLM",), model_types=("toy",), attention=full_only, ties_embeddings=True),)
'''
TOY_QUESTION = f"""
from service.engine.families import parse_architecture
from service.engine.inputs import Layout
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.parameters import num_parameters

wrapped = {{"architectures": ["LlavaForConditionalGeneration"], "text_config": {{"model_type": "toy"}}}}
for config in ({TOY_CONFIG!r}, {TOY_CONFIG!r} | wrapped):
    architecture = parse_architecture(config)
    print(num_parameters(architecture), cache_shape(architecture, Layout(), "auto", None).bytes_per_token)
"""
# embeddings, then per layer four square matrices, three of the network and two norms, then the last norm
TOY_PARAMETERS = 100 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64
TOY_BYTES_PER_TOKEN = 2 * 2 * 4 * 16 * 2  # key and value, two layers, four heads of 16, two bytes


def stated_words(path: Path) -> Iterator[str]:
    """Yield the words of a file's strings; a docstring's examples decide nothing."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield from re.findall(r"\w+", node.value)


@pytest.mark.parametrize("path", NAMELESS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_class_is_named_outside_its_family(path: Path) -> None:
    assert not set(stated_words(path)) & set(REGISTRY.families)


@pytest.mark.parametrize("path", PARTS, ids=lambda path: path.stem)
def test_parts_know_no_family(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    called = {
        node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    }

    assert not {name for name in imported if re.match(r"service\.engine\.families\.(?!parts\.)", name)}
    assert "startswith" not in called


def test_every_family_file_is_small_and_collected() -> None:
    files = [path for path in FAMILIES.glob("*.py") if path.stem not in ("__init__", "registry")]

    assert len(files) >= 40
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= 300
    named = {word for path in files for word in stated_words(path)}
    assert set(REGISTRY.families) <= named


def test_a_family_in_one_new_file_is_read_and_sized(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "service", tmp_path / "service", ignore=shutil.ignore_patterns("__pycache__", "data"))
    (tmp_path / "service" / "engine" / "families" / "toy.py").write_text(TOY_FILE, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-c", TOY_QUESTION], check=False, capture_output=True, text=True, cwd=tmp_path
    )

    assert done.stdout.splitlines() == [f"{TOY_PARAMETERS} {TOY_BYTES_PER_TOKEN}"] * 2, done.stderr


def test_a_family_may_be_registered_beside_the_published_ones() -> None:
    toy = Family(classes=("ToyForCausalLM",), attention=full_only, ties_embeddings=True)

    architecture = parse_architecture(TOY_CONFIG, collected([*published(), toy]))

    assert num_parameters(architecture) == TOY_PARAMETERS
    assert cache_shape(architecture, Layout(), "auto", None).bytes_per_token == TOY_BYTES_PER_TOKEN


def test_a_class_claimed_by_two_records_is_refused_when_the_registry_is_built() -> None:
    again = Family(classes=("LlamaForCausalLM",), attention=full_only)

    with pytest.raises(ClaimedTwiceError, match="LlamaForCausalLM"):
        collected([*published(), again])


def test_a_model_type_claimed_by_two_records_is_refused() -> None:
    again = Family(classes=("ToyForCausalLM",), model_types=("llama",), attention=full_only)

    with pytest.raises(ClaimedTwiceError, match="two records claim llama"):
        collected([*published(), again])


def test_a_family_that_reads_no_attention_and_wraps_nothing_is_refused() -> None:
    with pytest.raises(IncompleteFamilyError, match="ToyForCausalLM"):
        collected([Family(classes=("ToyForCausalLM",))])


def test_a_wrapper_of_an_unknown_class_is_refused_by_the_name_inside() -> None:
    registry = collected([Family(classes=("ToyForCausalLM",), wraps=always("InnerForCausalLM"))])

    with pytest.raises(UnsupportedModelError, match="InnerForCausalLM"):
        parse_architecture(TOY_CONFIG, registry)


@pytest.mark.parametrize("name", ["FooForCausalLM", "Llama", "LlamaForCausalLMs", "Gemma5ForCausalLM", "KimiK26"])
def test_a_class_that_only_begins_like_a_known_one_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedModelError, match=name) as refusal:
        parse_architecture({**TOY_CONFIG, "architectures": [name]})

    assert refusal.value.field == "model_config.architectures"
    assert set(str(refusal.value.accepted).split(", ")) <= set(REGISTRY.families)


@pytest.mark.parametrize(
    ("stated", "meant"),
    [
        ("LamaForCausalLM", ("LlamaForCausalLM",)),
        ("mixtralforcausallm", ("MixtralForCausalLM",)),
        ("GemmaForSequenceClassification", ("GemmaForCausalLM",)),
        ("DeepSeekV3ForCausalLM", ("DeepseekV3ForCausalLM",)),
        ("GPTOSSForCausalLM", ("GptOssForCausalLM",)),
        ("Qwen3ForCausalML", ("Qwen3ForCausalLM",)),
    ],
)
def test_a_class_that_is_misspelt_is_refused_with_those_it_may_mean(stated: str, meant: tuple[str, ...]) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        parse_architecture({**TOY_CONFIG, "architectures": [stated]})
    accepted = str(refusal.value.accepted).split(", ")
    assert set(meant) <= set(accepted)
    assert len(accepted) <= 3


@pytest.mark.parametrize("stated", ["Qwen4ForCausalLM", "MyForCausalLM", "T5ForConditionalGeneration", "ForCausalLM"])
def test_a_class_like_none_is_refused_with_all_there_are(stated: str) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        parse_architecture({**TOY_CONFIG, "architectures": [stated]})
    assert sorted(str(refusal.value.accepted).split(", ")) == sorted(REGISTRY.families)


@pytest.mark.parametrize(
    ("stated", "first"),
    [
        ("Qwen4ForCausalLM", "Qwen"),
        ("Llama5ForCausalLM", "Llama"),
        ("DeepseekV5ForCausalLM", "DeepseekV"),
        ("KimiK4ForConditionalGeneration", "KimiK"),
        ("GlmNewForCausalLM", "Glm"),
    ],
)
def test_a_class_of_another_number_is_refused_with_its_relatives_first(stated: str, first: str) -> None:
    with pytest.raises(UnsupportedModelError) as refusal:
        parse_architecture({**TOY_CONFIG, "architectures": [stated]})
    assert str(refusal.value.accepted).startswith(first)


def test_a_model_type_without_a_rule_is_refused_by_name() -> None:
    config = {**TOY_CONFIG, "architectures": ["LlavaForConditionalGeneration"], "text_config": {"model_type": "toy"}}

    with pytest.raises(UnsupportedModelError, match="'toy'") as refusal:
        parse_architecture(config)

    assert refusal.value.field == "model_config.text_config.model_type"
