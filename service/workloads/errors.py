"""Why a workload is not written, or not read."""


class WorkloadError(RuntimeError):
    """A workload that is not written, or not there."""


class NoWorkloadError(WorkloadError):
    """Nothing has this name."""

    def __init__(self, name: str, suggestions: tuple[str, ...]) -> None:
        """Keep what was looked for, and what comes close."""
        super().__init__(f"there is no workload {name!r}")
        self.suggestions = suggestions


class OtherVersionError(WorkloadError):
    """It is at another version than the writer saw; None where it is not there."""

    def __init__(self, version: int | None) -> None:
        """Keep the version it is at."""
        at = f'the workload is at version {version} (If-Match: "{version}")'
        super().__init__(f"{at if version is not None else 'the workload does not exist'}; nothing was written")
        self.version = version


class ExistsError(OtherVersionError):
    """It was to be new, and is not: the condition that is met writes over it."""


class UnconditionalError(WorkloadError):
    """It would be overwritten by somebody who did not say which version it saw."""

    def __init__(self, version: int) -> None:
        """Keep the version it is at."""
        super().__init__("state the version you saw: If-Match with the ETag of GET; nothing was written")
        self.version = version


class TooManyError(WorkloadError):
    """There is no room for another."""

    def __init__(self, most: int) -> None:
        """Keep how many there may be."""
        super().__init__(f"there are {most} workloads already; delete one first")


class LoadUnknownError(WorkloadError):
    """Nobody knows its load: no answer, and none of before that is young enough."""

    def named(self, name: str) -> "LoadUnknownError":
        """Return the same with the name of the workload, for whoever asked for several."""
        return LoadUnknownError(f"workload {name}: {self}")
