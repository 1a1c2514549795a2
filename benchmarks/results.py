"""Where the last figures of the long benchmarks are kept, for the page that `make promises` writes."""

from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).resolve().parent / "results"
