#!/usr/bin/env python3
"""Tables of .ci/simgrid.

table.py names FACTOR <SIM    tasks: the algorithms of `unisono sim --json` that are within FACTOR of the best one of
                              their kind, over levels or flat, and its length
table.py misses DIR           DIRECTORY RANKS COLLECTIVE BYTES of each cell that a selector wins
table.py table DIR            Markdown: ours beside the best selector's, each miss with its cause, and the simulator beside SMPI
table.py papers DIR           Markdown: P4's barriers and P5's BAGDS
table.py write PAGE MARK <TABLE   puts a table, but for a last line of `simgrid:`, between the marks of a page
"""
import datetime
import json
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
    return min(((ns, name) for name, ns in times.items() if wanted(name)), default=(float("inf"), "–"))


def over_levels(name):
    return name.startswith("levels")


def names(factor):
    for (collective, length), row in simulated(sys.stdin).items():
        for kind in (over_levels, lambda name: not over_levels(name)):
            least, _ = best(row, kind)
            for name in (name for name, ns in row.items() if kind(name) and ns <= factor * least):
                print(f"{collective}/{name}={length}")


def cells(work):
    """Of each cell: its directory, collective, bytes, all our times, and the best selector's."""
    done = (path.parent for path in work.glob("*-*/done"))
    for path in sorted(done, key=lambda path: (int(path.name.split("-")[1]), path.name)):
        peers = {selector: timed(path / selector) for selector in SELECTORS}
        for (collective, length), times in timed(path / "ours").items():
            yield path, collective, length, times, best({name: peers[name][collective, length][""] for name in SELECTORS})


def missed(times, peer):
    """Half a per cent is not a miss: SMPI's clock ticks in nanoseconds."""
    return best(times)[0] > 1.005 * peer[0]


def misses(work):
    for path, collective, length, times, peer in cells(work):
        if missed(times, peer):
            print(path, path.name.split("-")[1], collective, length)


def cause(path, collective, length, peer):
    """Which of SMPI's algorithms the selector took: those that take the same time."""
    same = set()
    for file in path.glob(f"{collective}-{length}=*"):
        if abs(best(timed(file)[collective, length])[0] - peer[0]) < 1:
            same.add(file.name.partition("=")[2])
    return " = ".join([peer[1], *sorted(same)])


def papers(work):
    """Of each barrier, and of each allgather of the papers: SMPI's time and our simulator's, in µs."""

    def row(path, key):
        ours, sim = timed(path / "ours")[key], simulated((path / "sim").read_text().splitlines())[key]
        return ours, sim

    def cells(ours, sim, names):
        least = min(ours[name] for name in names)
        mark = lambda name, text: f"**{text}**" if ours[name] == least else text
        return " | ".join(mark(name, f"{ours[name] / 1e3:.2f} ({sim[name] / 1e3:.2f})") for name in names)

    print(f"Taken {datetime.date.today()}.\n")
    barriers = ["central", "combining-4", "dissemination", "tournament", "bruck", "butterfly"]
    paths = sorted(work.glob("barrier-*"), key=lambda path: int(path.name.split("-")[-1]))
    print("| barrier, crossbar: ranks | " + " | ".join(barriers) + " |\n" + "|--:" * (len(barriers) + 1) + "|")
    for path in paths:
        print(f"| {path.name.split('-')[-1]} | {cells(*row(path, ('barrier', 0)), barriers)} |")
    gathers = ["linear", "bagds", "bruck", "ring"]
    print("\n| allgather, 8 ranks: network, bytes | " + " | ".join(gathers) + " |\n" + "|--:" * (len(gathers) + 1) + "|")
    for path in sorted(work.glob("allgather-*")):
        for length in (4, 64, 1024, 16384):
            print(f"| {path.name.split('-')[1]}, {length} | {cells(*row(path, ('allgather', length)), gathers)} |")
    (path,) = work.glob("cluster-*")
    tuned, ours = timed(path / "ompi"), timed(path / "ours")
    print("\n| 10 nodes of 128 ranks, crossbar: collective, bytes | coll/tuned, µs | best of ours over levels, µs | ours ÷ coll/tuned |\n|--:|--:|---|--:|")
    for (collective, length), times in sorted(ours.items()):
        least, name = best(times)
        peer, _ = best(tuned[collective, length])
        print(f"| {collective}, {length} | {peer / 1e3:.2f} | {least / 1e3:.2f} ({name}) | {least / peer:.2f} |")


def write(page, mark):
    begin, end = f"<!-- {mark} -->\n", f"<!-- end of {mark} -->\n"
    text, new = page.read_text(), sys.stdin.read().rsplit("\nsimgrid:", 1)[0]
    before, rest = text.split(begin)
    page.write_text(before + begin + new + end + rest.split(end)[1])


def table(work):
    rows, lost, ratios, won = [], [], defaultdict(list), 0
    for path, collective, length, times, peer in cells(work):
        network, ranks = path.name.split("-")
        levels, flat = best(times, over_levels), best(times, lambda name: not over_levels(name))
        mine = min(levels, flat)
        ratio = mine[0] / peer[0]
        rows.append(
            f"| {ranks} | {network} | {collective} | {length} | {levels[1]} | {levels[0] / 1e3:.2f} | {flat[1]} "
            f"| {flat[0] / 1e3:.2f} | {peer[1]} | {peer[0] / 1e3:.2f} | {ratio:.2f}{' missed' if missed(times, peer) else ''} |"
        )
        if missed(times, peer):
            how = cause(path, collective, length, peer)
            lost.append(f"- {ranks} ranks, {network}, {collective} of {length}: {how} takes {peer[0] / 1e3:.2f} µs, {mine[1]} {ratio:.2f} times that")
        else:
            won += 1
        sim = simulated((path / "sim").read_text().splitlines())[collective, length]
        for name, ns in times.items():
            ratios[network, collective, length].append(sim[name] / ns)
    print(f"Taken {datetime.date.today()}.\n")
    print("| ranks | network | collective | bytes | best over levels | µs | best flat | µs | best selector | µs | ours ÷ selector |")
    print("|--:|---|---|--:|---|--:|---|--:|---|--:|--:|")
    print("\n".join(rows))
    print("\nMisses, and which of SMPI's algorithms the selector took there:\n" if lost else "\nNo misses.")
    print("\n".join(lost))
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
        f"\nsimgrid: {len(rows)} cells verified, ours at most the best selector's time in {won}; "
        f"unisono sim within 10 % of SMPI in {near} of {len(everything)}"
    )


if __name__ == "__main__":
    what, argument, *rest = sys.argv[1:]
    if what == "names":
        names(float(argument))
    else:
        {"misses": misses, "table": table, "papers": papers, "write": write}[what](Path(argument), *rest)
