"""Why nothing came of asking a hub."""


class HubError(RuntimeError):
    """The hub could not be asked, or did not answer."""

    def __init__(self, detail: str) -> None:
        """Keep the sentence."""
        super().__init__(detail)
        self.detail = detail


class NotOnHubError(HubError):
    """The hub has no such model or file."""


class UnusableHubAnswerError(HubError):
    """What the hub has cannot be imported."""


class RedirectedAwayError(UnusableHubAnswerError):
    """The hub keeps the file on a host that imports may not talk to."""
