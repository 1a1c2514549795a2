"""What the properties of everything that is no answer to a question mean, with unit and scope.

Lists, changes, problems, batches, workloads, measurements, health; the answers' own are `questions/meanings.py`.
"""

from collections.abc import Mapping
from typing import Final

NEXT: Final = "`page_token` that asks for the next page; null: this is the last one"
REVISION: Final = "the revision of the catalog after it [number]"
WHEN: Final = "when it was written [ISO 8601 time, UTC]"
WHO: Final = "who wrote it: the name of a key, the fingerprint of a configured one, or a token's subject"

OF_ANY: Final[Mapping[str, str]] = {
    "next_page_token": NEXT,
    "catalog_revision": "the revision of the catalog that was read [number]",
    "changed_at": WHEN,
    "changed_by": WHO,
}
OF_MEASUREMENT: Final[Mapping[str, str]] = {
    "id": "its id: what DELETE takes",
    "what": "whose text it was, such as a vLLM start-up log",
    "kind": "start-up log: memory was measured; benchmark: times were",
    "model": "the catalog's id of the model",
    "gpu": "the catalog's id of the GPU type",
    "question": "the question to /capacity whose answer it corrects: fields and their values",
    "figures": "what was measured, by the names that answers give it",
    "stored_at": "when it was stored [ISO 8601 time, UTC]",
}
OF_SHELL: Final[Mapping[str, Mapping[str, str]]] = {
    "CatalogChange": {
        "number": "place among all changes, counted from 1 [number]",
        "catalog_revision": "the revision of the catalog that the write made [number]",
        "kind": "what the entry is: model, gpu or offer",
        "id": "its catalog id",
        "before": "the entry before; null: it was not there",
        "after": "the entry after; null: it was deleted",
    },
    "CatalogChanges": {"items": "changes, the newest first"},
    "Change": {
        "version": "the workload's version that this write made [number]",
        "before": "the fields of its question before; null: the name was free",
        "after": "the fields of its question after; null: it was deleted",
    },
    "Changes": {"items": "one entry for each write, the newest first"},
    "Checked": {
        "what": "whose text it is, such as a vLLM start-up log",
        "kind": "start-up log: memory was measured; benchmark: times were",
        "model": "the catalog's id of the model",
        "gpu": "the catalog's id of the GPU type",
        "settings": "what the text states of engine, layout and load, each with its line",
        "question": "the question to /capacity that predicts what was measured: fields and their values",
        "terms": "each figure that was measured beside its prediction",
        "error_fraction": "mean distance of the predictions from what was measured, over the terms that judge; null: "
        "none of them was measured [fraction]",
        "explanations": "settings that, had they been stated, would bring both together; the best first",
        "assumptions": "everything that the prediction rests on, with origin and source",
        "warnings": "what a reader must know before trusting the comparison",
        "stored": "what was stored of it; null: nothing was to be",
    },
    "Checkpoint": {
        "weight_format": "the format of its weights",
        "hf_id": "where it is published: its id at Hugging Face",
        "is_default": "whether it is taken where a question states no weight_format; true of exactly one",
        "quantization_config": "as published, for what its weights are quantized to; null: none is",
        "config": "keys of its own config.json that differ from the model's config; null: none does",
        "kv_cache_dtype": "what it has the cache store; null: as its quantization_config says, else the model's dtype",
        "weight_bytes": "all its weights as published, where they were counted; whole model [bytes]",
        "source": "where it is published",
    },
    "Deleted": {"id": "the id of the measurement that was deleted", "catalog_revision": REVISION},
    "Ended": {"name": "the name that is free again", "version": "the last version it had [number]"},
    "Explanation": {
        "change": "settings and their values, by their names in a question",
        "error_fraction": "mean distance that is left with them [fraction]",
        "error_fraction_now": "mean distance without them [fraction]",
    },
    "FieldProblem": {
        "field": "which field, by the name it has in a question; empty: the request as a whole",
        "detail": "what is wrong with it, in a sentence",
        "accepted": "what would be accepted; null: nobody can say",
    },
    "Figure": {
        "value": "the number, in the unit that its name ends in; of one GPU [bytes, bytes/s or FLOP/s]",
        "printed_as": "as its source prints it, unit included; null: just so",
        "source": "where it is published",
    },
    "GpuEntry": {
        "id": "the catalog's id",
        "name": "what its maker calls it",
        "vendor": "its maker",
        "architecture": "its generation, such as hopper",
        "compute_capability": "CUDA's, such as 9.0; null: it is no CUDA device",
        "aliases": "what else it is called in questions",
        "gpus_per_node": "GPUs of one server [count]",
        "scale_up_domain_gpus": "GPUs that the fast link joins, over one server or several [count]",
        "scale_up_kind": "what joins them, such as nvlink or pcie",
        "figures": "memory, bandwidth, links and peak rates of one GPU, by names that end in their unit",
    },
    "GpuList": {"items": "GPU types of this page, by id"},
    "Imported": {
        "entry": "the model as it now stands in the catalog",
        "warnings": "what is odd about it, and what nobody could tell",
        "catalog_revision": REVISION,
    },
    "Live": {"status": "`live`: the process answers"},
    "MeasuredFigure": {
        "value": "the number, in the unit that its name ends in [bytes, s, 1/s or tokens]",
        "line": "where the text says so, counted from 1 [number]",
    },
    "MeasurementChange": {
        "number": "place among all writes, counted from 1 [number]",
        "before": "the measurement before; null: it was not there",
        "after": "the measurement after; null: it was deleted",
    },
    "MeasurementChanges": {"items": "one entry for each write, the newest first"},
    "MeasurementEntry": OF_MEASUREMENT,
    "MeasurementShown": {**OF_MEASUREMENT, "stored": "what it changes in answers"},
    "MeasurementList": {"items": "measurements of this page, by id"},
    "ModelEntry": {
        "id": "the catalog's id",
        "name": "what its publisher calls it",
        "hf_id": "its id at Hugging Face; null: it is not published there",
        "aliases": "what else it is called in questions",
        "publisher": "who published it, as the hub names them",
        "config": "its config.json, as published",
        "num_parameters": "parameters by its publisher's count; null: by the config's; whole model [count]",
        "checkpoints": "the weight formats it comes in",
        "source": "where config and count are published",
    },
    "ModelList": {"items": "models of this page, by id"},
    "OfferEntry": {
        "id": "the catalog's id",
        "provider": "who rents it out",
        "instance_type": "the provider's name of the instance",
        "region": "where, as the provider names it; any: one price for all",
        "gpu": "the catalog's id of the GPU type",
        "gpu_count": "GPUs of one instance [count]",
        "usd_per_hour": "price of one instance, all of its GPUs together [USD per hour]",
        "as_of": "the date of the price [ISO date]",
        "source": "where the price is published",
    },
    "OfferList": {"items": "offers of this page, by id"},
    "Outcome": {
        "index": "place of the question in the batch, counted from 0 [number]",
        "answer": "what it is answered with; null where it has a problem",
        "problem": "why it has no answer; null where it has one",
    },
    "Outcomes": {
        "answers": "what became of each question, in the order of the batch",
        "succeeded": "questions with an answer [count]",
        "failed": "questions with a problem [count]",
    },
    "PluginAnswer": {"output": "what Argo CD's plugin generator reads"},
    "PluginOutput": {"parameters": "one flat object for each workload: its name, and single numbers of its answer"},
    "PluginRequest": {
        "applicationSetName": "the ApplicationSet that asks; it changes nothing",
        "input": "what it asks for",
    },
    "Problem": {
        "type": "the kind of problem, as a URI reference",
        "title": "the kind of problem, in words",
        "status": "the status of the response [HTTP status]",
        "detail": "what went wrong this time, and what would go right",
        "errors": "each field at fault; empty where none is",
    },
    "Ready": {
        "status": "`ready`: questions are answered",
        "catalog_revision": "the revision of the catalog in use [number]",
        "models": "models in it [count]",
        "gpus": "GPU types in it [count]",
    },
    "Said": {
        "name": "which setting, by the name it has in a question",
        "value": "its value [in the unit of its name]",
        "line": "where the text says so, counted from 1 [number]",
    },
    "Source": {"url": "the page", "checked_on": "when it was looked at [ISO date]"},
    "Stored": {
        "id": "its id among the measurements; null: nothing is stored",
        "changes": "what it changes in answers, by the names in their assumptions; empty: nothing",
        "error_fraction": "mean distance that its corrections leave; null: nobody can say [fraction]",
        "why_not": "why it changes nothing; empty where it does",
    },
    "TargetGroup": {
        "targets": "names of workloads to probe",
        "labels": "its version, and every single value of its question, as `__meta_sizer_...`",
    },
    "Term": {
        "name": "which figure, by the name that answers give it, its unit included",
        "measured": "what the text says, in that unit [bytes, s, 1/s or tokens]",
        "predicted": "what the answer says, in the same unit; null: nothing [bytes, s, 1/s or tokens]",
        "error_fraction": "predicted over measured, less one; null: they do not compare [fraction]",
        "line": "where the text says so, counted from 1 [number]",
    },
    "WorkloadList": {"items": "every workload, by name"},
    "WorkloadShown": {
        "name": "its name: what stands in its addresses",
        "version": "raised by every write; its ETag [number]",
        "question": "the fields of its question, and where its load is read from",
    },
    "Written": {"id": "the catalog's id of the entry", "catalog_revision": REVISION},
}


def shell_meaning(block: str, name: str) -> str | None:
    """Return what a property of a block that is no answer means; None where nobody says."""
    return OF_SHELL.get(block, {}).get(name) or OF_ANY.get(name)
