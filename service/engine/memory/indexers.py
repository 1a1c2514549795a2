"""Which layers of a model that selects tokens have an indexer, where a version gives one to every layer.

Sources:
    SGLang 0.5.9 to 0.5.17 `models/deepseek_v2.py` (`Indexer(`), `model_executor/pool_configurator.py`
    ("indexer_size_per_token * num_layers"); 0.5.18 and later build one in layers that select anew alone ("if not
    self.skip_topk"), and `mem_cache/kv_cache_configurator.py` (`_should_elide_dsa_index_k`).
"""

from service.engine.derived import derived
from service.engine.engines.plans import PlanRules
from service.engine.layers import Architecture


def as_indexed(architecture: Architecture, plan: PlanRules) -> Architecture:
    """Return the model as a version loads it: with keys and weights of an indexer in layers that reuse a selection."""
    return _indexed(architecture) if plan.indexes_every_layer else architecture


@derived(1)
def _indexed(architecture: Architecture) -> Architecture:
    return architecture.with_mixers(lambda mixer: mixer.indexed_like(architecture.mixers))
