"""Why nothing came of asking another service."""


class OutwardError(RuntimeError):
    """It could not be asked, or did not answer."""


class NotAllowedError(OutwardError):
    """It may not be asked: its address is none that this service talks to."""
