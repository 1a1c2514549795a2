"""`sizer`, begun without a look for garbage: what is imported lives on, and a look takes an eighth of a start."""

import gc
from importlib import import_module


def main() -> None:
    """Run the command that was asked for; garbage is looked for once its module is loaded."""
    gc.disable()
    import_module("service.cli").main()
