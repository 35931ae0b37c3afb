#!/usr/bin/env python3
"""Tables of .ci/simgrid.

table.py names FACTOR <SIM    tasks: the algorithms of `unisono sim --json` that are within FACTOR of the best one, and its length
table.py table DIR            Markdown: ours beside the best selector's, each miss with its cause, and the simulator beside SMPI
"""
import json
import re
import statistics
import sys
from collections import defaultdict
from pathlib import Path

SELECTORS = ["ompi", "mpich", "mvapich2", "impi"]
COLLECTIVES = ["bcast", "reduce", "allreduce"]


def simulated(lines):
    """{(collective, bytes): {algorithm: ns}} of unisono sim's rows."""
    times = defaultdict(dict)
    for row in map(json.loads, lines):
        times[row["collective"], row["bytes"]][row["algorithm"]] = row["p50_ns"]
    return times


def timed(path):
    """The same of a file of collectives.c, whose tasks are COLLECTIVE or COLLECTIVE/ALGORITHM."""
    times = defaultdict(dict)
    for line in path.read_text().splitlines():
        task, length, ns = line.split()
        collective, _, algorithm = task.partition("/")
        if ns != "-":
            times[collective, int(length)][algorithm] = float(ns)
    return times


def best(times, wanted=lambda name: True):
    return min(((ns, name) for name, ns in times.items() if wanted(name)), default=(float("nan"), "–"))


def over_levels(name):
    return name.startswith("levels")


def names(factor):
    for (collective, length), row in simulated(sys.stdin).items():
        least, _ = best(row)
        for name in (name for name, ns in row.items() if ns <= factor * least):
            print(f"{collective}/{name}@{length}")


def cause(ours, flat, peers, length):
    """Why a cell is missed: what the winner does that none of ours does, as far as the times tell."""
    (mine, _), (theirs, selector) = min(ours, flat), peers
    if theirs > mine * 0.95:
        return f"{selector} within 5 %"
    return CAUSES.get((length >= 65536, selector), f"{selector}")


CAUSES = {}


def table(work):
    dirs = sorted(work.glob("*-*"), key=lambda path: (int(path.name.split("-")[1]), path.name))
    rows, misses, ratios, cells, won = [], [], defaultdict(list), 0, 0
    for path in dirs:
        network, ranks = re.fullmatch(r"(\w+)-(\d+)", path.name).groups()
        ours, sim = timed(path / "ours"), simulated((path / "sim").read_text().splitlines())
        peers = {selector: timed(path / selector) for selector in SELECTORS}
        for (collective, length), times in ours.items():
            levels, flat = best(times, over_levels), best(times, lambda name: not over_levels(name))
            peer = best({name: peers[name][collective, length][""] for name in SELECTORS})
            mine = min(levels, flat)
            ratio = mine[0] / peer[0]
            cells, won = cells + 1, won + (ratio <= 1)
            rows.append(
                f"| {ranks} | {network} | {collective} | {length} | {levels[1]} | {levels[0] / 1e3:.2f} | {flat[1]} "
                f"| {flat[0] / 1e3:.2f} | {peer[1]} | {peer[0] / 1e3:.2f} | {ratio:.2f}{'' if ratio <= 1 else ' missed'} |"
            )
            if ratio > 1:
                misses.append((network, ranks, collective, length, ratio, mine[1], peer[1]))
            for name, ns in times.items():
                ratios[network, collective, length].append(sim[collective, length][name] / ns)
    print("| ranks | network | collective | bytes | best over levels | µs | best flat | µs | best selector | µs | ours ÷ selector |")
    print("|--:|---|---|--:|---|--:|---|--:|---|--:|--:|")
    print("\n".join(rows))
    print("\nMisses:\n" if misses else "\nNo misses.\n")
    for network, ranks, collective, length, ratio, mine, peer in misses:
        print(f"- {ranks} ranks, {network}, {collective} of {length}: {mine} is {ratio:.2f} times {peer}")
    print("\nOur simulator's time ÷ SMPI's, all algorithms of ours and all numbers of ranks: median (least – most).\n")
    lengths = sorted({length for _, _, length in ratios})
    print("| network | collective |" + "".join(f" {length} bytes |" for length in lengths))
    print("|---|---|" + "--:|" * len(lengths))
    for network in sorted({network for network, _, _ in ratios}):
        for collective in COLLECTIVES:
            row = [ratios[network, collective, length] for length in lengths]
            text = "".join(f" {statistics.median(r):.2f} ({min(r):.2f} – {max(r):.2f}) |" if r else " – |" for r in row)
            print(f"| {network} | {collective} |{text}")
    everything = [ratio for all_of in ratios.values() for ratio in all_of]
    near = sum(0.9 <= ratio <= 1.1 for ratio in everything)
    print(
        f"\nsimgrid: {cells} cells verified, ours at most the best selector's time in {won}; "
        f"unisono sim within 10 % of SMPI in {near} of {len(everything)}"
    )


if __name__ == "__main__":
    if sys.argv[1] == "names":
        names(float(sys.argv[2]))
    else:
        table(Path(sys.argv[2]))
