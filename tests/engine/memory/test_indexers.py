"""Which layers have an indexer, against SGLang's sources: in all of GLM-5.2 before 0.5.18, in 21 of 78 since."""

from dataclasses import replace

import pytest

from service.catalog.engine_rules import rules_for
from service.catalog.snapshot import Snapshot
from service.engine.inputs import EngineName
from service.engine.layers import Architecture
from service.engine.layers.latent import LatentAttention
from service.engine.memory.indexers import as_indexed
from service.engine.memory.parameters import num_parameters


def indexed(architecture: Architecture) -> int:
    mixers = [mixer for layer in architecture.layers for mixer in layer.mixers]
    return sum(isinstance(mixer, LatentAttention) and mixer.indexer is not None for mixer in mixers)


# 0.5.17 `models/deepseek_v2.py` makes an `Indexer` in each layer of a model that selects; 0.5.18 "if not
# self.skip_topk", by GLM-5.2's `indexer_types`, of which 21 are "full".
@pytest.mark.parametrize(
    ("engine", "version", "layers"), [("sglang", "0.5.17", 78), ("sglang", "0.5.18", 21), ("vllm", "0.33", 21)]
)
def test_layers_that_reuse_a_selection_have_an_indexer_in_some_versions(
    catalog: Snapshot, engine: EngineName, version: str, layers: int
) -> None:
    model = catalog.model("glm-5.2").architecture

    assert indexed(as_indexed(model, rules_for(engine, version).plan)) == layers


def test_an_indexer_has_the_weights_of_its_neighbour_s(catalog: Snapshot) -> None:
    model = catalog.model("glm-5.2").architecture
    every = as_indexed(model, rules_for("sglang", "0.5.15").plan)

    # Its config: `q_lora_rank` 2048, `index_n_heads` 32 of `index_head_dim` 128, `hidden_size` 6144; a norm with a bias.
    one = 2_048 * 32 * 128 + 6_144 * 128 + 6_144 * 32 + 2 * 128
    assert num_parameters(every) - num_parameters(model) == (78 - 21) * one


@pytest.mark.parametrize("name", ["deepseek-v3.2", "deepseek-v3", "llama-3.1-8b"])
def test_a_model_whose_layers_reuse_no_selection_stays_as_it_is(catalog: Snapshot, name: str) -> None:
    model = catalog.model(name).architecture

    assert as_indexed(model, replace(rules_for("sglang", "0.5.15").plan, indexes_every_layer=True)) is model
