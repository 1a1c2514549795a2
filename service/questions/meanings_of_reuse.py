"""What the properties of caches that are used again mean."""

from collections.abc import Mapping
from typing import Final

OF_REUSE: Final[Mapping[str, Mapping[str, str]]] = {
    "Reuse": {
        "request_bytes": "cache of one request that another may go on from; whole model [bytes]",
        "read_again_s": "time to compute it anew on one replica [s]",
        "usd_per_thousand_reads": "what a replica costs in a thousand times that; null: no price [USD]",
        "break_even_bytes_per_s": "rate per GPU at which fetching it takes as long as reading anew [bytes/s]",
        "worth_keeping_s": "wait for the next use up to which keeping it on the GPU costs less than reading anew [s]",
        "tiers": "host memory and drives beside the GPUs, the faster first",
    },
    "ReuseTier": {
        "tier": "cpu: memory of the host; nvme: a drive for each GPU",
        "bytes_per_s": "what one GPU reads from it at most [bytes/s]",
        "fetch_s": "time in which every GPU fetches its part of one request [s]",
        "saves_s": "less than reading anew for each hit; negative: reading anew is quicker [s]",
        "saves_usd_per_thousand_hits": "what a replica costs in a thousand times that; null: no price [USD]",
        "break_even_hit_fraction": "hits in all requests above which storing every one pays; null: never [fraction]",
        "bytes_per_waiting_s": "room for each second from a use to the next; whole deployment [bytes/s]",
    },
}
