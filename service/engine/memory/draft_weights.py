"""Weights of the layers that draft.

    modules x (projection of the joined states + norms + output head)  +  the layers' own matrices

Source: vLLM 0.33 `model_executor/models/*_mtp.py`, `llama_eagle.py`, `llama_eagle3.py`, `qwen3_dspark.py`
(`DSparkMarkovHead`: "Both weights are replicated"), `models/deepseek_v41/nvidia/dspark.py`, and
`v1/worker/gpu/spec_decode/eagle/utils.py` for what is shared with the model.
"""

from dataclasses import replace
from typing import Final, cast

from service.engine.engines.plans import PlanRules
from service.engine.formats.matrix import Matrix, vector
from service.engine.inputs import Layout
from service.engine.layers import DraftHead, vocabulary_rows
from service.engine.memory.matrices import joined_streams, layer_matrices

MOST_COUNTS: Final = 8  # of drafted tokens that are asked for of one model
INDEX_BYTES: Final = 8  # of one entry of the map between vocabularies


def draft_matrices(head: DraftHead, layout: Layout) -> list[Matrix]:
    """Return what the last pipeline stage holds of a draft, besides what it shares with the model.

    Each module has a projection of the joined states, norms, and now and then an output head. Behind
    pipeline stages the draft keeps an embedding table of its own.
    """
    matrices: list[Matrix] = []
    for layer, module in zip(head.body.layers, head.layer_modules, strict=True):
        own = f"model.layers.{layer.index}."
        for matrix in layer_matrices(head.body, layer, layout):
            is_linear = matrix.is_linear and not matrix.module.endswith(head.unquantized)
            matrices.append(replace(matrix, module=matrix.module.replace(own, module, 1), is_linear=is_linear))
    matrices += [replace(matrix, count=head.num_modules * matrix.count) for matrix in _around(head, layout)]
    if layout.pipeline_parallel_size > 1:
        matrices.append(_table(head, layout, head.body.vocab_size))
    return matrices


def as_loaded(head: DraftHead | None, num_speculative_tokens: int, plan: PlanRules) -> DraftHead | None:
    """Return what is loaded of modules where each drafted token has a model of its own, embeddings and head included.

    Source: SGLang 0.5.9 to 0.5.23 `managers/tp_worker.py` (`_init_multi_layer_eagle_model_runners`: "for i in range(1,
    self.server_args.speculative_num_steps)"), `models/mimo_v2_nextn.py` (one `mtp_block` in each);
    `arg_groups/overrides.py` (`_mimo_v2_overrides`: "enable_multi_layer_eagle").
    """
    times = num_speculative_tokens
    if head is None or not head.is_loaded_by_step or not plan.loads_drafts_by_step or times == 1:
        return head
    places = tuple(range(len(head.body.layers))) * times
    kept = head.body.derived.by("loaded by step", MOST_COUNTS)
    return cast("DraftHead", kept.get_or(times, lambda: head.of_layers(places, head.num_modules * times)))


def own_ends(head: DraftHead, layout: Layout, rest: Layout) -> list[Matrix]:
    """Return the embeddings and the output head that each module has to itself, where they are shared later.

    An EAGLE-3 head keeps an output head of its own, which `draft_matrices` has.

    Source: SGLang 0.5.15 and 0.5.23 `managers/scheduler.py` (`init_memory_pools`: the model's, then the draft's),
    `speculative/eagle_worker_v2.py` (`init_lm_head`, behind both), `models/deepseek_nextn.py` and others
    (`embed_tokens`, `lm_head`).
    """
    body = head.body
    ends = [_table(head, layout, body.vocab_size)]
    if not head.head_vocab_size and not body.ties_embeddings:
        ends.append(_table(head, rest, body.vocab_size))
    return [replace(matrix, count=head.num_modules) for matrix in ends]


def _around(head: DraftHead, layout: Layout) -> list[Matrix]:
    """Return what one module has around its layers."""
    hidden, streams = head.body.hidden_size, head.body.residual_streams
    matrices = [_projection(head, layout), vector("model.draft_norms", head.num_norms * hidden)]
    if streams > 1 and not head.drafts_at_once:
        matrices += joined_streams(head.body, "model.draft_streams")
    if head.pair_rank:
        # A table and a head of its width, whole on every rank, and how sure each token is.
        tables = 2 * head.body.vocab_size * head.pair_rank
        matrices += [vector("model.draft_pairs", tables + hidden + head.pair_rank)]
    if head.head_vocab_size:
        matrices.append(_table(head, layout, head.head_vocab_size))
    if head.is_vocab_mapped:
        entries = vector("model.draft_vocabulary", head.head_vocab_size)
        matrices.append(replace(entries, element_bytes=INDEX_BYTES))
    if head.widened_inputs:
        rows = _input_rows(head, layout)
        matrices.append(Matrix(module="model.draft_inputs", rows=rows, columns=head.widened_inputs, is_linear=False))
    return matrices


def _projection(head: DraftHead, layout: Layout) -> Matrix:
    """Return what brings the joined states to the model's width."""
    hidden = head.body.hidden_size
    return Matrix(
        module=head.projection_module or "model.draft_projection",
        rows=hidden // layout.tensor_parallel_size if head.is_projection_split else hidden,
        columns=head.joined_states * hidden,
        is_linear=bool(head.projection_module),
        scale_bytes=head.projection_scale_bytes,
    )


def _input_rows(head: DraftHead, layout: Layout) -> int:
    """Return the rows of the fused queries, keys and values, which an EAGLE-3 layer widens."""
    layer = head.body.layers[0]
    matrices = [matrix for mixer in layer.mixers for matrix in mixer.matrices(head.body.hidden_size, layout, "")]
    return sum(matrix.rows for matrix in matrices if matrix.name == "q_proj")


def _table(head: DraftHead, layout: Layout, vocab_size: int) -> Matrix:
    rows = vocabulary_rows(vocab_size, layout.tensor_parallel_size)
    return Matrix(module="model.draft_table", rows=rows, columns=head.body.hidden_size, is_linear=False)
