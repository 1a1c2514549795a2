"""The library's descriptions of systems, as ranks of several nodes are timed with them."""

from importlib import resources
from pathlib import Path

import yaml

from service.performance.systems import Systems, of_whole_nodes, whole_nodes

PUBLISHED = Path(str(resources.files("aiconfigurator_core"))) / "systems"


def rates(folder: Path) -> dict[str, float]:
    """Return the rate beyond a node, by system."""
    said = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in folder.glob("*.yaml")}
    return {name: each["node"]["inter_node_bw"] for name, each in said.items() if "node" in each}


def test_every_system_has_the_rate_of_all_its_cards() -> None:
    published, whole = rates(PUBLISHED), rates(Path(whole_nodes().path))

    assert whole["h200_sxm"] == 8 * published["h200_sxm"] == 400e9
    assert whole["gb200"] == published["gb200"]  # within a rack nothing is faster
    assert all(whole[name] >= published[name] for name in published)


def test_all_else_is_the_librarys_own(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "notes.txt").write_text("as it was", encoding="utf-8")
    (tmp_path / "one.yaml").write_text("- a list", encoding="utf-8")
    systems = Systems(tmp_path)
    copied = Path(systems.path)

    assert (copied / "notes.txt").read_text(encoding="utf-8") == "as it was"
    assert (copied / "data").is_dir()
    assert (copied / "one.yaml").read_text(encoding="utf-8") == "- a list"

    systems.close()
    assert not copied.exists()


def test_a_description_without_a_network_stays() -> None:
    assert of_whole_nodes("node: {inter_node_bw: 5}") == "node: {inter_node_bw: 5}"
