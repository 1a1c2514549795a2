"""What the catalog refuses."""


class NotInCatalogError(LookupError):
    """Nothing in the catalog has this name."""

    def __init__(self, kind: str, name: str, suggestions: tuple[str, ...], why: str | None = None) -> None:
        """Keep what was looked for and what comes close; `why` says why it is refused where it is no stranger."""
        super().__init__(why or f"the catalog has no {kind} {name!r}")
        self.kind = kind
        self.name = name
        self.suggestions = suggestions
        self._why = why

    def again(self) -> "NotInCatalogError":
        """Return the same refusal, to be raised anew."""
        return NotInCatalogError(self.kind, self.name, self.suggestions, self._why)


class InvalidCatalogError(ValueError):
    """A catalog that does not hold together; the one before it stays in use."""


class ConflictError(ValueError):
    """A write that would contradict what the catalog holds."""

    def __init__(self, detail: str, field: str, accepted: str) -> None:
        """Keep which field is at fault, and what would be accepted."""
        super().__init__(detail)
        self.field = field
        self.accepted = accepted


class UnusableOfferError(ValueError):
    """An offer that no question would find, or whose price would never be old."""

    def __init__(self, field: str, detail: str, accepted: str) -> None:
        """Keep which field is at fault, and what would be accepted."""
        super().__init__(f"{field}: {detail}; accepted: {accepted}")
        self.field = field
        self.detail = detail
        self.accepted = accepted


class InDoubtError(RuntimeError):
    """The database took a write and fell silent before it said whether it is kept."""
