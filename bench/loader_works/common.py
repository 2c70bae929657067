# SPDX-License-Identifier: Apache-2.0
"""What the works of bench/loader share: the ratios they check, and the loop that peers are timed by."""

import json
import resource
import statistics
import sys
import time


def median(fields, name, key="rate"):
    return statistics.median(fields[name][key]) if name in fields else None


def at_least(what, found, wanted):
    """A check for the table; a contender that could not be measured has none."""
    if found is None:
        return []
    return [{"what": what, "found": found, "wanted": f"at least {wanted}", "holds": found >= wanted}]


def at_most(what, found, wanted):
    if found is None:
        return []
    return [{"what": what, "found": found, "wanted": f"at most {wanted}", "holds": found <= wanted}]


def ratio(a, b):
    return a / b if a is not None and b else None


def time_batches(batches, seconds, count, started):
    """Prints the line of a peer. `batches` is an endless iterable, `started` when the process began its work."""
    first, counted_from, samples, cpu_from = None, None, 0, 0
    begin = time.monotonic()
    for batch in batches:
        now = time.monotonic()
        if first is None:
            first = now - started
            begin = now
        if counted_from is not None:
            samples += count(batch)
        elif now - begin > seconds / 5:
            counted_from, cpu_from = now, cpu_seconds()
        if counted_from is not None and now - begin > seconds and samples:
            used = resource.getrusage(resource.RUSAGE_SELF)
            print(
                json.dumps(
                    {
                        "rate": samples / (now - counted_from),
                        "first_seconds": first,
                        "cpu_us": (cpu_seconds() - cpu_from) * 1e6 / samples,
                        "memory_bytes": tree_memory() or used.ru_maxrss * 1024,
                    }
                ),
                flush=True,
            )
            sys.exit(0)


def tree():
    """This process and its descendants."""
    import os

    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
            parents[int(pid)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
        except (OSError, IndexError):
            pass
    mine, grown = {os.getpid()}, True
    while grown:
        grown = False
        for pid, (parent, _) in parents.items():
            if parent in mine and pid not in mine:
                mine.add(pid)
                grown = True
    return {pid: parents[pid][1] for pid in mine if pid in parents}


def cpu_seconds():
    import os

    return sum(tree().values()) / os.sysconf("SC_CLK_TCK")


def tree_memory():
    """Proportional, so that pages shared with workers count once."""
    total = 0
    for pid in tree():
        try:
            with open(f"/proc/{pid}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) * 1024 for line in file if line.startswith("Pss:"))
        except OSError:
            pass
    return total
