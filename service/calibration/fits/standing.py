"""The constants that stand, to be judged anew where the rule of what is told changed, and no constant did."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from service.calibration.fits.priors import Key
from service.performance.fitted import Row, factors_of, fitted_rows
from service.performance.tables import Factors

PLACE: Final = ("basis", "engine", "rules_versions", "gpu_architecture", "kernels")


class Standing:
    """What `calibration.yaml` holds: constants of every class, and the day of their fit."""

    def __init__(self) -> None:
        """Read the rows, in their order."""
        self._rows: Mapping[Key, Row] = {
            (row.basis, row.engine, row.rules_versions, row.gpu_architecture, row.kernels): row for row in fitted_rows()
        }

    @property
    def fitted(self) -> Mapping[Key, Factors]:
        """Return the constants of the classes that were fitted, and are no median of others."""
        return {key: factors_of(row) for key, row in self._rows.items() if row.fit.runs}

    def kept(self, judged: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return rows with the constants that stand, and the day of their fit, in the order of the file."""
        rows = {tuple(row[name] for name in PLACE): row for row in judged}
        standing = [self._kept(row, rows[key]) for key, row in self._rows.items() if key in rows]
        return [*standing, *(dict(row) for key, row in rows.items() if key not in self._rows)]

    def _kept(self, standing: Row, judged: Mapping[str, Any]) -> dict[str, Any]:
        fit = {**judged["fit"], "date": standing.fit.date}
        return {**judged, "factors": standing.factors.model_dump(), "fit": fit}
