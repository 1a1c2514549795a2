"""The library's descriptions of systems, with the network of a node taken whole.

For more ranks than a node has GPUs the library multiplies what it measured within one by the ratio of a link's rate to
that of one network card. Collectives pass through all cards of a node at once: see `nodes`.
"""

import atexit
import re
import tempfile
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Final

import yaml

RATE: Final = re.compile(r"^(\s*inter_node_bw:\s*)\d+", re.MULTILINE)


@lru_cache(maxsize=1)
def whole_nodes() -> "Systems":
    """Return a folder of descriptions for ranks of several nodes, beside the library's own tables."""
    systems = Systems(Path(str(resources.files("aiconfigurator_core"))) / "systems")
    atexit.register(systems.close)
    return systems


class Systems:
    """A folder that lasts until it is closed."""

    def __init__(self, published: Path) -> None:
        """Write what differs, and point to the rest.

        Args:
            published: the library's own folder.
        """
        self._folder = tempfile.TemporaryDirectory()
        self.path = self._folder.name
        for each in published.iterdir():
            place = Path(self.path, each.name)
            if each.suffix == ".yaml":
                place.write_text(of_whole_nodes(each.read_text(encoding="utf-8")), encoding="utf-8")
            else:
                place.symlink_to(each)

    def close(self) -> None:
        """Remove the folder."""
        self._folder.cleanup()


def of_whole_nodes(description: str) -> str:
    """Return a system's description with the rate of all network cards of a node, up to that of a link within it.

    >>> print(of_whole_nodes("node: {num_gpus_per_node: 8}"))
    node: {num_gpus_per_node: 8}
    >>> print(of_whole_nodes('''
    ... node:
    ...   num_gpus_per_node: 8
    ...   inter_node_bw: 50000000000  # of a card
    ...   intra_node_bw: 450000000000'''))
    <BLANKLINE>
    node:
      num_gpus_per_node: 8
      inter_node_bw: 400000000000  # of a card
      intra_node_bw: 450000000000
    """
    said = yaml.safe_load(description)
    node = said.get("node") if isinstance(said, dict) else None
    if not isinstance(node, dict) or not {"inter_node_bw", "intra_node_bw"} <= set(node):
        return description
    rate = min(node["intra_node_bw"], node["num_gpus_per_node"] * node["inter_node_bw"])
    return RATE.sub(rf"\g<1>{max(rate, node['inter_node_bw'])}", description)
