"""`python -m benchmarks [small|full] [group ...]`: a table, and benchmarks/latest.json."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

# OpenBLAS and OpenMP read this when they load; the arms are compared on one thread each.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from benchmarks.approximate_search import approximate_search
from benchmarks.exact_search import exact_search
from benchmarks.ranked_lists import ranked_lists
from benchmarks.timing import Measurement
from benchmarks.toy_suite import toy_suite

_LATEST = Path(__file__).parent / "latest.json"
# Documents, dimension, rounds; for approximate search; queries of the measures.
_SCALES = {
    "small": ((100_000, 384, 3), (100_000, 128, 3), (20_000, 2)),
    "full": ((1_000_000, 384, 3), (1_000_000, 128, 3), (100_000, 3)),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("scale", nargs="?", choices=_SCALES, default="full")
    parser.add_argument("groups", nargs="*", help="exact, approximate, measures, toy; all if none")
    asked = parser.parse_args()
    exact, approximate, measures = _SCALES[asked.scale]
    groups: dict[str, Callable[[], Iterator[Measurement]]] = {
        "toy": toy_suite,
        "measures": lambda: ranked_lists(*measures),
        "approximate": lambda: approximate_search(*approximate),
        "exact": lambda: exact_search(*exact),
    }
    unknown = sorted(set(asked.groups) - set(groups))
    if unknown:
        parser.error(f"unknown group {unknown[0]!r}; there are {', '.join(groups)}")
    # What other groups found earlier at this scale stays.
    kept = [
        record
        for record in (json.loads(_LATEST.read_text("utf-8")) if _LATEST.exists() else [])
        if asked.groups and record["settings"]["scale"] == asked.scale
    ]
    print("ratio = peer's time / ours; one thread and processor time, unless noted", flush=True)
    print(f"{'name':16} {'ours s':>9} {'peer s':>9} {'ratio':>7} {'by wall':>7}  peer", flush=True)
    found: list[dict[str, Any]] = []
    for name, measure in groups.items():
        if asked.groups and name not in asked.groups:
            continue
        for line in measure():
            print(_row(line), flush=True)
            found.append({**asdict(line), "settings": {"scale": asked.scale, **line.settings}})
            names = {record["name"] for record in found}
            records = [*(record for record in kept if record["name"] not in names), *found]
            _LATEST.write_text(json.dumps(records, indent=1) + "\n", "utf-8")


def _row(line: Measurement) -> str:
    if line.peer_s is None or line.ratio is None:
        return f"{line.name:16} {line.ours_s:9.3f} {'':9} {'':7} {'':7}  {line.settings['seconds']}"
    wall = line.settings["wall_median_ratio"]
    noted = "" if line.settings["clock"] == "cpu" else " (wall, any threads)"
    return (
        f"{line.name:16} {line.ours_s:9.3f} {line.peer_s:9.3f} {line.ratio:7.2f} {wall:7.2f}  "
        f"{line.peer}{noted}"
    )


if __name__ == "__main__":
    main()
