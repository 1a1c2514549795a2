"""`sizer`, begun without a look for garbage: what is imported lives on, and a look takes an eighth of a start."""

import gc
from importlib import import_module


def main() -> None:
    """Import the commands, and run the one that was asked for."""
    gc.disable()
    commands = import_module("service.cli")
    gc.enable()
    commands.main()
