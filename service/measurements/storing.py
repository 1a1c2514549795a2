"""From a checked text to what is stored of it: the same text about the same deployment is one measurement."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from service.catalog.measurement_rows import MeasuredFigure, MeasurementEntry
from service.measurements.checking import Checked
from service.measurements.corrections import Learnt, StoredMeasurements
from service.measurements.observed import Stored
from service.questions.sources import Sources

ID_LENGTH: Final = 16


def entry_of(checked: Checked) -> MeasurementEntry:
    """Return what is stored of a text: its figures, and the question they answer.

    A pool of less than nothing is none that a prediction can be brought to.
    """
    seen = (term for term in checked.terms if term.measured >= 0)
    figures = {term.name: MeasuredFigure(value=term.measured, line=term.line) for term in seen}
    return MeasurementEntry(
        id=_id_of(checked.question, figures),
        what=checked.what,
        kind=checked.kind,
        model=checked.model,
        gpu=checked.gpu,
        question=dict(checked.question),
        figures=figures,
        stored_at=datetime.now(UTC).replace(microsecond=0),
    )


def _id_of(question: Mapping[str, object], figures: Mapping[str, MeasuredFigure]) -> str:
    values = {name: figure.value for name, figure in figures.items()}
    return sha256(json.dumps([question, values], sort_keys=True).encode()).hexdigest()[:ID_LENGTH]


def stored_as(entry: MeasurementEntry, sources: Sources, corrections: StoredMeasurements) -> Stored:
    """Return what an entry changes, by what is predicted of its question."""
    return _shown(entry.id, corrections.learnt(entry, sources))


def _shown(measurement_id: str, learnt: Learnt) -> Stored:
    measured = learnt.measured
    return Stored(
        id=None if measured is None else measurement_id,
        changes="" if measured is None else measured.source,
        error_fraction=None if measured is None else measured.error_fraction,
        why_not=learnt.why_not,
    )
