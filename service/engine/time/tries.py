"""What was tried in one search: settings of which the same would be found out are not tried again."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from service.engine.time.server import Server
from service.engine.time.shared import Known


@dataclass(frozen=True, slots=True)
class Tries:
    """What was found out about servers that differ in their bounds alone, and what finding it out used."""

    _known: defaultdict[int, list[tuple[Known, bool]]] = field(default_factory=lambda: defaultdict(list))

    def tell_of(self, server: Server | None) -> bool:
        """Return whether another one told what a server would."""
        return server is not None and self._verdict(server) is not None

    def told(self, server: Server, ask: Callable[[], bool]) -> bool:
        """Return what another one told, or else what asking for it tells."""
        verdict = self._verdict(server)
        if verdict is None:
            with server.simulations.shared.noting() as noted:
                verdict = ask()
            self._known[server.unbound_key].append((Known(server.machine, noted.reach), verdict))
        return verdict

    @contextmanager
    def noting(self, server: Server | None) -> Iterator[None]:
        """Take down that everything is found out about a server meanwhile, if its step times decide."""
        if server is None:
            yield
            return
        with server.simulations.shared.noting() as noted:
            yield
        self._known[server.unbound_key].append((Known(server.machine, noted.reach), True))

    def _verdict(self, server: Server) -> bool | None:
        known = self._known[server.unbound_key]
        return next((verdict for other, verdict in known if other.tells_of(server.machine)), None)
