"""Writes what the ledger holds as a page: ``python -m tests.campaigns.report [--ledger FILE] [--out FILE]``."""

import argparse
import re
from collections import Counter
from pathlib import Path

from tests.campaigns.kinds import CAMPAIGNS
from tests.campaigns.ledger import OF_RUNS, ROOT, Ledger, version
from tests.campaigns.run import LEDGER

PAGE = ROOT / "docs" / "reliability.md"
MOST_REASONS = 5
NUMBER = re.compile(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?")

HEAD = """# Reliability

Campaigns that try to make runs fail: how often, and with what result. `make campaign` runs the cases (hours; it goes on
where it was left), `make reliability` writes this page from what it found. Every case follows from its seed, and is run
again where a source of the package, a model or the case itself has changed. The last column has the digest of the
sources from which the cases follow, for which the figures hold; that of the present ones is `{runs}` for ramps, laws
and methods, which take no part in commands, pages and devices, and `{version}` for the others.

| campaign | what must hold | cases | of | bad | sources |
|---|---|--:|--:|--:|---|
"""


def kind_of(reason):
    """A reason without its numbers, so that like ones are counted together."""
    return NUMBER.sub("…", (reason.splitlines() or ["as expected"])[0])[:120].replace("|", "/")


def latest(ledger, name):
    """The entries of a campaign for the present sources, or for those it was last run with, and their digest."""
    versions = [entry["version"] for entry in ledger.entries if entry["campaign"] == name]
    sources = version(name) if version(name) in versions or not versions else versions[-1]
    return ledger.of(name, sources), f"`{sources}`" if versions else ""


def written_before(text, name):
    """The row and the section of a campaign on a page that was written before; "" where there is none."""
    row = re.search(rf"^\| {re.escape(name)} \|.*\n", text, re.MULTILINE)
    section = re.search(rf"^\n## {re.escape(titled(name))}\n(?:(?!## ).*\n)*", text, re.MULTILINE)
    return row.group() if row else "", section.group().rstrip("\n") + "\n" if section else ""


def run_again(section, entries, sources):
    """A section of a page written before, with a line about seeds that were run again with other sources."""
    good, bad = (sorted(e["seed"] for e in entries if e["ok"] == ok) for ok in (True, False))
    said = [f"{words} {', '.join(map(str, seeds))}" for words, seeds in (("good", good), ("bad", bad)) if seeds]
    line = f"Seeds run again with the sources {sources}: {'; '.join(said)}.\n"
    kept = re.sub(r"\nSeeds run again with .*\n", "", section)
    return f"{kept}\n{line}"


def titled(name):
    return name[0].upper() + name[1:]


def page(ledger, before=""):
    """The page as text.

    What the page ``before`` says of a campaign stays where the ledger has no case of it, or only some that were run
    again by their seeds; those are named.
    """
    lines, details = [HEAD.format(version=version(), runs=version(OF_RUNS[0]))], []
    for name, kind in CAMPAIGNS.items():
        entries, sources = latest(ledger, name)
        row, section = written_before(before, name)
        if row and all(entry.get("again") for entry in entries):
            lines.append(row)
            details.append(run_again(section, entries, sources) if entries else section)
            continue
        bad = [entry for entry in entries if not entry["ok"]]
        tried, wrong = sum(entry.get("tried", 1) for entry in entries), sum(entry.get("wrong", 1) for entry in bad)
        lines.append(f"| {name} | {kind.says} | {tried} | {kind.cases * kind.batch} | {wrong} | {sources} |\n")
        if not entries:
            continue
        ends = Counter(kind_of(entry["reason"]) for entry in entries if entry["ok"])
        details.append(f"\n## {titled(name)}\n\n")
        if kind.batch > 1:
            details += [_answers(entries), *_reasons(bad)]
            continue
        events = sum(entry.get("transitions", 0) for entry in entries)
        listed = ", ".join(f"{end} {count}" for end, count in ends.most_common())
        details.append(f"{events} transitions. " * (events > 0) + f"Good ends: {listed or 'none'}.\n")
        details += kind.table(entries) if kind.table else _by_model(entries)
        details += _reasons(bad)
    return "".join(lines + details)


def _answers(entries):
    """How the trials of a campaign were answered."""
    counts = Counter()
    for entry in entries:
        counts.update(entry.get("answers", {}))
    return f"{', '.join(f'{answer} {count}' for answer, count in counts.most_common())}.\n"


def _by_model(entries):
    """A table of the models of a campaign, where it has several."""
    names = sorted({entry["model"] for entry in entries if "model" in entry})
    if len(names) < 2:
        return
    yield "\n| model | cases | bad |\n|---|--:|--:|\n"
    for name in names:
        own = [entry for entry in entries if entry.get("model") == name]
        yield f"| {name} | {len(own)} | {sum(not entry['ok'] for entry in own)} |\n"


def _reasons(bad):
    """The commonest reasons, each with a seed to see it again."""
    if not bad:
        return
    yield "\n| found | times | first seed |\n|---|--:|--:|\n"
    counts = Counter(kind_of(entry["reason"]) for entry in bad)
    for reason, count in counts.most_common(MOST_REASONS):
        first = min(entry["seed"] for entry in bad if kind_of(entry["reason"]) == reason)
        yield f"| {reason} | {count} | {first} |\n"


def main():
    parser = argparse.ArgumentParser(description="write the page on reliability")
    parser.add_argument("--ledger", type=Path, default=LEDGER)
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    before = given.out.read_text(encoding="utf-8") if given.out.exists() else ""
    given.out.write_text(page(Ledger(given.ledger), before), encoding="utf-8")


if __name__ == "__main__":
    main()
