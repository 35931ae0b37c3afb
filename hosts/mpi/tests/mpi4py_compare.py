#!/usr/bin/env python3
"""mpi4py_compare.py WITHOUT WITH [TEST...]: what `test/main.py -v` of mpi4py printed without and with a preload.

The same tests must have the same outcomes, but those that are named. Prints what differs, and `N passed, N failed`, one a test.
"""
import re
import sys

TEST = re.compile(r"(\w+) \(([\w.]+)\) \.\.\. ")
OUTCOME = re.compile(r"(ok|FAIL|ERROR|skipped|expected failure|unexpected success)\b")


def outcomes(path):
    """Test id → outcome. What other ranks print may lie between a test's name and its outcome."""
    with open(path, encoding="utf-8", errors="replace") as log:
        text = log.read()
    # The details of failures and the summary come after all outcomes.
    text = re.split(r"\n(?:======|------)", text, maxsplit=1)[0]
    tests = list(TEST.finditer(text))
    ends = [test.start() for test in tests[1:]] + [len(text)]
    found = {}
    for test, end in zip(tests, ends):
        words = OUTCOME.findall(text[test.end():end])
        found[test.group(2)] = words[-1] if words else "no outcome"
    return found


def main():
    without, preloaded = outcomes(sys.argv[1]), outcomes(sys.argv[2])
    names = sorted((without.keys() | preloaded.keys()) - set(sys.argv[3:]))
    differ = [n for n in names if without.get(n, "missing") != preloaded.get(n, "missing")]
    unknown = [n for n in names if "no outcome" in (without.get(n), preloaded.get(n)) and n not in differ]
    for name in differ[:20]:
        print(f"  {name}: {without.get(name, 'missing')} without, {preloaded.get(name, 'missing')} with the preload")
    for name in unknown[:20]:
        print(f"  {name}: no outcome either way")
    failed = len(differ) + len(unknown)
    kinds = {word: sum(found == word for found in preloaded.values()) for word in sorted(set(preloaded.values()))}
    said = ", ".join(f"{count} {word}" for word, count in kinds.items())
    print(f"  outcomes with the preload: {said or 'none'}")
    print(f"mpi4py: {len(names) - failed} passed, {failed} failed")
    return 1 if failed or not names else 0


if __name__ == "__main__":
    sys.exit(main())
