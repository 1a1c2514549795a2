"""The last workloads read, on disk beside the catalog: autoscalers are answered by a start without a database, too."""

import json
import logging
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from service.catalog.disk import replace_file
from service.workloads.workload import Workload

logger = logging.getLogger(__name__)
SCHEMA: Final = 1  # raised whenever workloads written before cannot be read any more
FILE: Final = "workloads.json"
READER: Final = TypeAdapter(tuple[Workload, ...])


class WorkloadFile:
    """One file: a line with format and checksum, then the workloads."""

    def __init__(self, path: Path) -> None:
        """Keep where it is."""
        self._path = path

    def write(self, workloads: Mapping[str, Workload]) -> None:
        """Replace what is on disk, whole or not at all; a full disk is logged, and changes nothing."""
        body = READER.dump_json(tuple(workloads.values()))
        head = json.dumps({"schema": SCHEMA, "sha256": sha256(body).hexdigest()}).encode()
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._path, head + b"\n" + body)
        except OSError as error:
            logger.warning("workloads not kept on disk: %s", type(error).__name__)

    def read(self) -> Mapping[str, Workload] | None:
        """Return the workloads; None where there are none to use."""
        try:
            head, _, body = self._path.read_bytes().partition(b"\n")
            if json.loads(head) != {"schema": SCHEMA, "sha256": sha256(body).hexdigest()}:
                logger.warning("workloads on disk not usable: another format, or cut off")
                return None
            return {workload.name: workload for workload in READER.validate_json(body)}
        except FileNotFoundError:
            return None
        except (OSError, ValueError, ValidationError) as error:
            logger.warning("workloads on disk not usable: %s", type(error).__name__)
            return None
