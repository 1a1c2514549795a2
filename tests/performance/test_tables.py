"""Step times kept on disk, built in a process of their own, and what happens where neither can be had."""

import json
import os
import signal
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from service.engine.inputs import Layout
from service.performance.builder import Builder
from service.performance.kernel_tables import InProcess, KernelTables, NotMeasuredError
from service.performance.measured import KernelLibrary
from service.performance.stored import Kernels, Refusal, TableFiles, as_message, from_message
from service.performance.tables import StepTables

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 8192,
    "num_attention_heads": 32,
    "num_hidden_layers": 2,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
}


def kernels(layers: int = 2, system: str = "l40s", modes: tuple[dict[str, str], ...] = ({},)) -> Kernels:
    config = json.dumps({**LLAMA, "num_hidden_layers": layers})
    return Kernels(config_json=config, system=system, layout=Layout(), engine="vllm", modes=modes)


def values(found: StepTables | Refusal) -> object:
    return as_message(found)


@pytest.fixture(scope="module")
def built() -> StepTables:
    found = KernelLibrary().build(kernels())
    assert isinstance(found, StepTables)
    return found


class NoBuilder:
    """Builds nothing, and says so: what it is asked for was not kept."""

    def build(self, kernels: Kernels) -> StepTables:
        raise AssertionError(f"{kernels.system} was not kept")

    def close(self) -> None:
        """Nothing to give back."""


def test_a_table_is_read_back_to_the_last_bit(tmp_path: Path, built: StepTables) -> None:
    KernelTables(TableFiles(tmp_path), InProcess()).of(kernels())

    again = KernelTables(TableFiles(tmp_path), NoBuilder()).of(kernels())

    assert values(again) == values(built)
    (file,) = tmp_path.rglob("*.steps")
    assert file.stat().st_size < 2_000


def test_a_refusal_is_kept_as_well(tmp_path: Path) -> None:
    asked = kernels(system="a100_sxm", modes=({"gemm_quant_mode": "nvfp4"},))
    with pytest.raises(NotMeasuredError) as first:
        KernelTables(TableFiles(tmp_path), InProcess()).of(asked)

    with pytest.raises(NotMeasuredError) as second:
        KernelTables(TableFiles(tmp_path), NoBuilder()).of(asked)

    assert str(first.value) == str(second.value) != ""


@pytest.mark.parametrize("asked_before", [False, True], ids=["first", "after another model"])
def test_what_a_refusal_says_does_not_depend_on_what_was_asked_before(
    asked_before: bool,  # noqa: FBT001 - a column
) -> None:
    library = KernelLibrary()
    modes = ({"gemm_quant_mode": "int4_wo"},)
    unknown = replace(kernels(modes=modes), config_json=json.dumps({**LLAMA, "architectures": ["Unheard"]}))
    if asked_before:
        library.build(kernels(modes=modes))

    refused = library.build(unknown)

    assert isinstance(refused, Refusal)
    assert "GEMM perf data missing for quant 'int4_wo'" in refused.reason


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[:0],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:40] + bytes([content[40] ^ 1]) + content[41:],
        lambda content: b"JUNK" + content[4:],
    ],
    ids=["empty", "cut short", "too long", "one bit off", "something else"],
)
def test_a_file_that_is_not_whole_is_built_again(
    tmp_path: Path, built: StepTables, spoil: Callable[[bytes], bytes]
) -> None:
    files, key = TableFiles(tmp_path), kernels().key()
    files.write(key, built)
    (file,) = tmp_path.rglob("*.steps")
    file.write_bytes(spoil(file.read_bytes()))

    assert files.read(key) is None
    assert values(KernelTables(files, InProcess()).of(kernels())) == values(built)
    assert files.read(key) is not None


def test_a_folder_that_cannot_be_made_costs_nothing_but_time(tmp_path: Path, built: StepTables) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("not a folder")
    tables = KernelTables(TableFiles(in_the_way / "tables"), InProcess())

    assert values(tables.of(kernels())) == values(built)
    assert tables.has(kernels())


def test_nothing_is_left_beside_the_tables(tmp_path: Path, built: StepTables) -> None:
    TableFiles(tmp_path).write(kernels().key(), built)

    assert [path.suffix for path in tmp_path.rglob("*") if path.is_file()] == [".steps"]
    assert stat.S_ISREG(next(tmp_path.rglob("*.steps")).stat().st_mode)


def test_keys_differ_by_everything_a_table_depends_on() -> None:
    keys = {
        kernels().key(),
        kernels(layers=3).key(),
        kernels(system="h100_sxm").key(),
        kernels(modes=({"gemm_quant_mode": "fp8"},)).key(),
    }

    assert len(keys) == 4
    assert kernels().key() == kernels().key()


def test_a_builder_of_its_own_makes_the_same_tables_and_goes_away(built: StepTables) -> None:
    builder = Builder(idle_s=60.0)
    found = builder.build(kernels())
    pid = builder.process_id
    assert pid is not None

    builder.close()

    assert values(found) == values(built)
    assert not Path(f"/proc/{pid}").exists()


def test_a_builder_that_dies_is_replaced(built: StepTables) -> None:
    builder = Builder(idle_s=60.0)
    builder.build(kernels())
    assert builder.process_id is not None
    os.kill(builder.process_id, signal.SIGKILL)

    assert values(builder.build(kernels())) == values(built)
    builder.close()


def test_messages_round_trip(built: StepTables) -> None:
    assert values(from_message(json.loads(json.dumps(as_message(built))))) == values(built)
    assert from_message(as_message(Refusal("no data"))) == Refusal("no data")
