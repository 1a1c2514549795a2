"""A new variant is one file: one that forgets a rule fails the type check by its name, a whole one is right everywhere."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine import layers
from service.engine.errors import InvalidQuestionError, UnsupportedLayoutError
from service.engine.facts import Checkpoint, ModelFacts
from service.engine.fleet.layouts import check_layout
from service.engine.formats.quantization import UNQUANTIZED, Quantization
from service.engine.inputs import EngineSettings, Layout
from service.engine.layers import (
    Architecture,
    DecoderLayer,
    DenseMlp,
    FeedForward,
    GroupedQueryAttention,
    Mixer,
    NoMlp,
    RecurrentMixer,
    Sharding,
)
from service.engine.memory.activation import (
    expert_workspace_elements,
    widest_layer_elements,
    working_of,
)
from service.engine.memory.adapters import adapter_bytes
from service.engine.memory.cache_shape import cache_shape
from service.engine.memory.drafts import draft_head
from service.engine.memory.ledger import rules_of_model
from service.engine.memory.parameters import num_active_parameters, num_parameters
from service.engine.memory.plan import MemoryPlan, memory_plan
from service.engine.memory.separate_pools import has_separate_pools, separate_pools
from service.engine.memory.weights import rank_weights
from service.performance.workload import workload_of
from tests.engine import toys
from tests.engine.toys import MatrixMemory, OneKeyAttention, TwinExperts

ROOT = Path(__file__).resolve().parents[2]
HIDDEN = 1_024
TP1, TP2 = Layout(), Layout(tensor_parallel_size=2)
BASES = {"MatrixMemory": RecurrentMixer, "OneKeyAttention": Mixer, "TwinExperts": FeedForward}
ARGUMENTS = {
    "MatrixMemory": "num_heads=1, head_dim=1",
    "OneKeyAttention": "num_heads=1, head_dim=1",
    "TwinExperts": "num_experts=1, columns=1",
}

MEMORY = MatrixMemory(num_heads=32, head_dim=128)
ONE_KEY = OneKeyAttention(num_heads=6, head_dim=128)
TWINS = TwinExperts(num_experts=4, columns=512)
GROUPED = GroupedQueryAttention(num_attention_heads=8, num_key_value_heads=2, head_dim=128, v_head_dim=128)
DENSE = DenseMlp(intermediate_size=2_048)


def model(*parts: tuple[Mixer, FeedForward]) -> Architecture:
    return Architecture(
        name="MadeUpForCausalLM",
        dtype="bfloat16",
        hidden_size=HIDDEN,
        vocab_size=64,
        max_position_embeddings=8_192,
        default_max_model_len=8_192,
        layers=tuple(DecoderLayer(index=index, mixers=(mixer,), mlp=mlp) for index, (mixer, mlp) in enumerate(parts)),
    )


HYBRID = model((MEMORY, DENSE), (GROUPED, DENSE))
SPARSE = model((ONE_KEY, TWINS), (ONE_KEY, TWINS))


def settings() -> EngineSettings:
    return EngineSettings(
        gpu_memory_utilization=0.9,
        kv_cache_dtype="bf16",
        max_model_len=8_192,
        max_num_batched_tokens=8_192,
        max_num_seqs=256,
    )


def planned(catalog: Snapshot, architecture: Architecture, engine: str = "vllm") -> MemoryPlan:
    checkpoint = Checkpoint(
        weight_format="bf16", quantization=UNQUANTIZED, hf_id=None, is_default=True, kv_cache_dtype=None, source=None
    )
    facts = ModelFacts(id="made-up", architecture=architecture, checkpoints=(checkpoint,), source=None)
    rules = rules_for("sglang" if engine == "sglang" else "vllm")
    return memory_plan(
        facts, checkpoint, catalog.gpu("h100"), TP1, settings(), rules,
        input_tokens=1_000, output_tokens=100, shorten_to_fit=False,
    )  # fmt: skip


def forgetful(tree: ast.Module) -> Iterator[tuple[str, str, str]]:
    """Yield a class without each rule that its base demands: its name, the rule, its source."""
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        for rule in sorted(BASES[node.name].__abstractmethods__):
            kept = [it for it in node.body if not (isinstance(it, ast.FunctionDef) and it.name == rule)]
            name = f"{node.name}Without_{rule}"
            copy = ast.ClassDef(name=name, bases=node.bases, keywords=[], body=kept, decorator_list=node.decorator_list)
            yield name, rule, f"{ast.unparse(copy)}\n\n{name}({ARGUMENTS[node.name]})\n"


def test_a_variant_that_forgets_any_rule_fails_the_type_check_by_the_rule_s_name(tmp_path: Path) -> None:
    text = Path(str(toys.__file__)).read_text(encoding="utf-8")
    cases = list(forgetful(ast.parse(text)))
    module = tmp_path / "forgetful.py"
    module.write_text(text + "\n" + "\n".join(source for _, _, source in cases), encoding="utf-8")

    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--ignore-missing-imports", "--cache-dir", str(tmp_path / "cache"), str(module)],
        check=False, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)},
    )  # fmt: skip

    complaints = [line for line in done.stdout.splitlines() if "error" in line]
    expected = [
        f'Cannot instantiate abstract class "{name}" with abstract attribute "{rule}"' for name, rule, _ in cases
    ]
    assert [line.split("error: ")[1].split("  [")[0] for line in complaints[:-1]] == expected, done.stdout
    assert {rule for _, rule, _ in cases} == {rule for base in BASES.values() for rule in base.__abstractmethods__}


def test_blocks_are_inflated_to_hold_a_new_state(catalog: Snapshot) -> None:
    # 32 matrices of 128 x 128 fp32 values are 2,097,152 bytes: 2,048 tokens of two heads of 2 x 128 bf16 values.
    cache = planned(catalog, HYBRID).kv_cache

    assert cache.block_size == 2_048
    assert {(group.kind, group.page_size_bytes) for group in cache.groups} == {
        ("mamba", 2_097_152), ("full_attention", 2_097_152),
    }  # fmt: skip
    assert cache.state_bytes_per_request == 2_097_152
    assert cache.bytes_per_token == 2 * 2 * 128 * 2


def test_a_new_attention_s_blocks_are_what_it_asks_for() -> None:
    alone, beside = model((ONE_KEY, DENSE)), model((ONE_KEY, DENSE), (MEMORY, DENSE))

    assert cache_shape(alone, TP1, "bf16", None).block_size == 48
    # Multiples of 48, which hold the state in tokens of 256 bytes: 171 x 48 = 8,208 >= 8,192.
    assert cache_shape(beside, TP1, "bf16", None).block_size == 8_208


def test_a_new_recurrence_is_a_mixture_to_the_engine_s_rules() -> None:
    rules = rules_for("vllm")
    rules = replace(rules, for_mixtures=replace(rules, rules_version="of-mixtures"))

    assert rules_of_model(HYBRID, rules).rules_version == "of-mixtures"
    assert rules_of_model(SPARSE, rules).rules_version == "of-mixtures"
    assert rules_of_model(model((GROUPED, DENSE)), rules).rules_version == rules.rules_version


def test_new_weights_are_counted_and_split() -> None:
    memory = 4 * 32 * 128 * HIDDEN
    grouped, dense = (2 * 8 + 2 * 2) * 128 * HIDDEN, 3 * 2_048 * HIDDEN
    around = 2 * 64 * HIDDEN + 5 * HIDDEN  # embedding, output head, two norms a layer and a last one

    assert num_parameters(HYBRID) == memory + grouped + 2 * dense + around
    halves = rank_weights(HYBRID, layout=TP2, quantization=UNQUANTIZED).param_bytes
    assert halves == memory + grouped + 2 * dense + 2 * around - 2 * 64 * HIDDEN


def test_of_new_experts_a_token_passes_those_it_is_routed_to() -> None:
    assert num_parameters(SPARSE) - num_active_parameters(SPARSE) == 2 * 2 * 512 * HIDDEN
    assert (
        rank_weights(SPARSE, layout=TP1, quantization=UNQUANTIZED).by_component["experts"] == 2 * 4 * 512 * HIDDEN * 2
    )


def test_layouts_that_a_new_variant_cannot_be_cut_into_are_refused_by_its_name() -> None:
    with pytest.raises(UnsupportedLayoutError, match="32 memory heads"):
        check_layout(model((MEMORY, NoMlp())), UNQUANTIZED, Layout(tensor_parallel_size=3))
    with pytest.raises(UnsupportedLayoutError, match="6 one-key heads nor"):
        check_layout(SPARSE, UNQUANTIZED, Layout(tensor_parallel_size=4))
    with pytest.raises(UnsupportedLayoutError, match="512 twin columns on a rank"):
        check_layout(SPARSE, Quantization(scheme="fp8-block", block=512), TP2)
    with pytest.raises(UnsupportedLayoutError, match="the model has 4"):
        check_layout(SPARSE, UNQUANTIZED, Layout(data_parallel_size=8, expert_parallel=True))
    check_layout(SPARSE, UNQUANTIZED, Layout(data_parallel_size=4, expert_parallel=True))


def test_ranks_share_a_new_cache_where_it_says_so() -> None:
    spread = Layout(tensor_parallel_size=2, decode_context_parallel_size=2)
    shared = model((ONE_KEY, DENSE))

    check_layout(shared, UNQUANTIZED, spread)
    assert cache_shape(shared, spread, "bf16", None).bytes_per_token_per_gpu == 128  # of 256, held in turn
    with pytest.raises(UnsupportedLayoutError, match="attention whose cache grows"):
        check_layout(model((MEMORY, DENSE)), UNQUANTIZED, spread)


def test_working_memory_holds_what_new_parts_hold() -> None:
    tokens = settings().max_num_batched_tokens

    assert widest_layer_elements(HYBRID, TP2) == 4 * 32 * 128 // 2 + 2 * HIDDEN
    assert widest_layer_elements(model((GROUPED, TWINS)), TP1) == 7 * 512 + 2 * HIDDEN
    assert expert_workspace_elements(SPARSE, TP1) == 11 * HIDDEN
    # Keys and values of up to 65,536 earlier tokens at once, 5 elements each, against 8,192 tokens of the widest part.
    sparse = working_of(SPARSE, TP1, settings(), rules_for("vllm"))
    assert sparse.forward_bytes(tokens, settings().max_num_seqs) == max(
        2 * 5 * 65_536, 2 * tokens * (16 * 6 * 128 + 2 * HIDDEN)
    )
    # An indexer's buffer for every second token, and its logits, where nothing else is larger.
    indexed = working_of(model((ONE_KEY, NoMlp())), TP1, settings(), rules_for("vllm"))
    assert indexed.workspace_bytes(tokens) == 5 * 8_192 * 1_152 // 2 + (512 << 20)


def test_step_times_read_a_new_state_twice_and_new_experts_by_routing(catalog: Snapshot) -> None:
    hybrid = workload_of(HYBRID, UNQUANTIZED, catalog.gpu("h100"), TP2, "bf16")
    sparse = workload_of(SPARSE, UNQUANTIZED, catalog.gpu("h100"), TP2, "fp8")

    assert [work.state_bytes for work in hybrid.mixers] == [2 * 2_097_152 / 2, 0]
    assert [(work.token_bytes, work.longest) for work in sparse.mixers] == [(2 * 128, 1_000.0)]
    assert [experts.routing for experts in sparse.experts] == [TWINS.routing]
    assert sparse.experts[0].weight_bytes == 2 * 4 * 512 * HIDDEN
    assert sparse.experts[0].flop_per_token == 2 * 2 * 512 * HIDDEN


def test_separate_pools_hold_new_states_and_pages(catalog: Snapshot) -> None:
    pools = separate_pools(HYBRID, TP1, settings(), 1 << 30)

    assert pools.state_bytes == 2_097_152
    assert pools.num_states == int((1 << 30) * 9 / 19 / 2_097_152) - 1  # which no request holds
    assert planned(catalog, HYBRID, "sglang").kv_cache.groups[0].blocks_per_request == 5
    assert (
        separate_pools(
            model((OneKeyAttention(num_heads=6, head_dim=128, page_tokens=64), DENSE)), TP1, settings(), 1 << 30
        ).page_size
        == 64
    )
    assert not has_separate_pools(model((OneKeyAttention(num_heads=6, head_dim=128, page_tokens=None), DENSE)))


def test_adapters_and_drafts_follow_where_a_new_variant_says_how() -> None:
    assert adapter_bytes(SPARSE, TP1, 1, 8) == 2 * 8 * 2 * (6 * 128 + HIDDEN + 4 * (512 + HIDDEN))
    with pytest.raises(InvalidQuestionError, match="have no rule"):
        adapter_bytes(HYBRID, TP1, 1, 8)

    head = draft_head(SPARSE, "eagle")
    assert head is not None
    assert head.body.mixers == (ONE_KEY,)
    assert head.body.feed_forwards == (DenseMlp(intermediate_size=2 * 512),)
    with pytest.raises(InvalidQuestionError, match="do not follow"):
        draft_head(model((MEMORY, DENSE)), "eagle")


# What the toys need not say: their answers differ by sharding alone.
def test_a_new_state_is_split_over_ranks() -> None:
    rank = Sharding(tensor_parallel_size=8, cache_element_bytes=2, model_element_bytes=2)

    assert MEMORY.caches(rank)[0].state_bytes == 2_097_152 // 8


BASE_NAMES = {"Mixer", "FeedForward", "Attention", "Mlp"}
VARIANTS = {
    name
    for name in layers.__all__
    if isinstance(kind := getattr(layers, name), type) and issubclass(kind, Mixer | FeedForward)
} - BASE_NAMES
ROOMS = [
    path
    for path in sorted((ROOT / "service").rglob("*.py"))
    if ROOT / "service" / "engine" / "layers" not in path.parents
]


def variant_tests(tree: ast.Module) -> Iterator[int]:
    """Yield the lines that ask which variant something is: by isinstance, match, comparison of types, or a tuple."""

    def names(node: ast.AST) -> set[str]:
        return {it.id for it in ast.walk(node) if isinstance(it, ast.Name)} | {
            it.attr for it in ast.walk(node) if isinstance(it, ast.Attribute)
        }

    types = {id(node) for whole in ast.walk(tree) if isinstance(whole, ast.Subscript) for node in ast.walk(whole.slice)}
    for node in ast.walk(tree):
        if id(node) in types:  # tuple[GroupedQueryAttention, ...] says what something is, and does not ask
            continue
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass" | "type")):
                asked = names(node) & VARIANTS
            case ast.MatchClass(cls=kind):
                asked = names(kind) & VARIANTS
            case ast.Compare():
                asked = {it.id for it in (node.left, *node.comparators) if isinstance(it, ast.Name)} & VARIANTS
            case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
                asked = {it.id for it in elements if isinstance(it, ast.Name)} & VARIANTS
            case _:
                continue
        if asked:
            yield node.lineno


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_rule_outside_asks_which_variant_a_layer_is(path: Path) -> None:
    assert list(variant_tests(ast.parse(path.read_text(encoding="utf-8")))) == []


def test_such_a_question_would_be_seen() -> None:
    asked = """
RECURRENT = (Mamba1, Mamba2)
Mixers = tuple[GroupedQueryAttention, ...]
def rule(mixer):
    match mixer:
        case layers.GroupedQueryAttention(): return 1
    if isinstance(mixer, layers.LatentAttention) or type(mixer) is MoeMlp: return 2
"""
    assert sorted(set(variant_tests(ast.parse(asked)))) == [2, 6, 7]


def test_every_variant_has_a_file_with_formula_and_source() -> None:
    assert isinstance(layers, ModuleType)
    for path in sorted((ROOT / "service" / "engine" / "layers").glob("[a-z]*.py")):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        assert "Source" in docstring, path.name
        assert "\n    " in docstring, path.name
