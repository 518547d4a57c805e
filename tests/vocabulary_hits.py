"""Uses of words that the project's vocabulary replaces: ``python -m tests.vocabulary_hits [PATH...] [--hard]``.

Prose is read from comments, docstrings and texts of Python, C, JavaScript, HTML and CSS and from Markdown, without code
spans, formulas, fenced blocks and doctests.  The rules are those of :mod:`tests.vocabulary_rules`.
"""

import argparse
import bisect
import collections
import functools
import html.parser
import json
import re
import sys
from pathlib import Path
from typing import NamedTuple

from tests.vocabulary_rules import RULES

ROOT = Path(__file__).parents[1]
BUDGET = ROOT / "tests" / "vocabulary_budget.json"

# Glob and kind of its texts: comments and docstrings are "code" where there are two kinds, other texts the second.
SOURCES = (
    ("fsm_dyn/**/*.py", ("code", "messages")),
    ("fsm_dyn/**/*.[ch]", ("code", "messages")),
    ("fsm_dyn/**/*.ino", ("code", "messages")),
    ("fsm_dyn/page/static/js/*.js", ("code", "page")),
    ("fsm_dyn/page/static/*.css", ("code", "page")),
    ("fsm_dyn/page/static/*.html", ("page",)),
    ("mechanisms/**/*.py", ("code", "messages")),
    ("docs/hooks/*.py", ("code", "messages")),
    ("yaml_models/**/*.yaml", ("docs",)),
    ("docs/cookbook/*.yaml", ("docs",)),
    ("docs/**/*.md", ("docs",)),
    ("*.md", ("docs",)),
    ("tests/**/*.py", ("tests", "")),
    ("tests/**/*.[ch]", ("tests", "")),
)
# What is about words itself.
# abi.py and layouts.py are generated from the headers, which are read; the page of benchmarks from their programs
LEFT_OUT = re.compile(
    r"docs/benchmarks\.md|docs/glossary\.md|tests/(test_)?vocabulary|fsm_dyn/runtime/(abi|layouts)\.py"
)

_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<name>\bdef\ test_\w+)"
    r"|(?P<prefix>\b[rbfu]{1,2}|)(?P<quote>\"\"\"|'''|\"|')(?P<text>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
_C = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<prefix>)(?P<quote>[\"'`])(?P<text>(?:\\.|(?!(?P=quote)).)*?)(?P=quote)",
    re.DOTALL,
)
_YAML = re.compile(r"(?:^|\s)#(?P<comment>.*)|^\s*(?:summary|source|because):\s*(?P<text>\S.*)")
_BETWEEN_PARTS = re.compile(r"[\s\\]*")  # what separates the parts of one text
_PLACEHOLDER = re.compile(r"\$?\{(?:[^{}]|\{[^{}]*\})*\}|%[-+ .\d]*[dfgsi]\b")
_SKIPPED = re.compile(r"``.+?``|`[^`]*`|\$[^$]*\$|https?://\S+|(?<=\])\([^()]*\)")


class Text(NamedTuple):
    """A piece of prose in lower case, with blanks collapsed, and where its lines begin in it."""

    file: str
    kind: str  # "code", "messages", "page", "docs" or "tests"
    prose: str
    starts: tuple[int, ...]  # in ``prose``
    lines: tuple[int, ...]  # numbers of these lines in the file, from 1


class Hit(NamedTuple):
    """One use of a word that a rule replaces."""

    rule: str
    file: str
    line: int
    kind: str
    found: str

    @property
    def group(self):
        """The part of the budget in which it counts."""
        return "tests" if self.kind == "tests" else "project"


def _text(file, kind, parts):
    """Make a text of pairs of a line's number and its content."""
    prose, starts, lines = "", [], []
    for number, content in parts:
        words = " ".join(content.split())
        if words and not words.startswith((">>>", "...")):
            starts.append(len(prose))
            lines.append(number)
            prose += words + " "
    # what is skipped keeps its length, so that positions stay those of the lines
    prose = _SKIPPED.sub(lambda match: "`" * len(match.group()), prose.lower())
    return Text(file, kind, prose, tuple(starts), tuple(lines))


def _numbered(first, content):
    return list(enumerate(content.split("\n"), first))


def _program_texts(file, source, kinds, tokens):
    """Yield the comments, docstrings and texts of a program; parts of one text that are split over lines are joined."""
    line_starts = [0, *(match.end() for match in re.finditer("\n", source))]
    code, other = kinds
    parts, kind, end, comment = [], None, 0, False
    for token in tokens.finditer(source):
        number = bisect.bisect_right(line_starts, token.start())
        alone = not source[line_starts[number - 1] : token.start()].strip()
        if token["comment"]:
            content, new = re.sub(r"^(//|/\*|#)|\*/$", "", token["comment"]), code
        elif token.groupdict().get("name"):
            content, new = token["name"].split("test_", 1)[1].replace("_", " "), code
        elif len(token["quote"]) == 3 and alone and "f" not in token["prefix"].lower():
            content, new = token["text"], code
        else:
            content, new = _PLACEHOLDER.sub("·", token["text"].replace("\\n", " ")), other
        joined = new == kind and _BETWEEN_PARTS.fullmatch(source, end, token.start())
        if new == code:  # a comment continues in the next line where it stands alone; nothing else of this kind does
            joined = joined and comment and token["comment"] and alone and source[end : token.start()].count("\n") == 1
        if not joined:
            if parts and kind:
                yield _text(file, kind, parts)
            parts = []
        if new == code or " " in content or parts:
            parts += _numbered(number, content)
        kind, end, comment = new, token.end(), bool(token["comment"])
    if parts and kind:
        yield _text(file, kind, parts)


class _Html(html.parser.HTMLParser):
    """Collects the texts of a document and of the attributes that people read."""

    def __init__(self):
        super().__init__()
        self.found, self._within = [], ""

    def handle_starttag(self, tag, attrs):
        self._within = tag
        for name, value in attrs:
            if value and name in ("title", "aria-label", "placeholder", "alt", "content"):
                self.found.append((self.getpos()[0], value))

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if data.strip() and self._within not in ("script", "style"):
            self.found.append((self.getpos()[0], data))


def _html_texts(file, source, kinds):
    reader = _Html()
    reader.feed(source)
    for line, content in reader.found:
        yield _text(file, kinds[0], _numbered(line, content))


def _markdown_texts(file, source, kinds):
    """Yield the paragraphs; of the changes only those that are not released."""
    parts, fenced, sections = [], False, 0
    for number, line in [*enumerate(source.splitlines(), 1), (0, "")]:
        sections += file == "CHANGELOG.md" and line.startswith("## ")
        if sections > 1:
            break
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        if fenced or fence or not line.strip():
            if parts:
                yield _text(file, kinds[0], parts)
            parts = []
        else:
            parts.append((number, line))
    if parts:
        yield _text(file, kinds[0], parts)


def _yaml_texts(file, source, kinds):
    """Yield the comments of a model file, those of successive lines together, and what its keys tell people."""
    parts = []
    for number, line in [*enumerate(source.splitlines(), 1), (0, "")]:
        found = _YAML.search(line)
        alone = found and found["comment"] is not None and not line[: found.start()].strip()
        if parts and not alone:
            yield _text(file, kinds[0], parts)
            parts = []
        if alone:
            parts.append((number, found["comment"]))
        elif found:
            yield _text(file, kinds[0], [(number, found["comment"] or found["text"])])


def read(file, source, kinds):
    """Return the texts of one file.

    Parameters
    ----------
    file : str
        Its path from the root of the project.
    source : str
    kinds : tuple of str
        As in ``SOURCES``.

    Returns
    -------
    list of Text
    """
    suffix = Path(file).suffix
    if suffix == ".md":
        return list(_markdown_texts(file, source, kinds))
    if suffix == ".yaml":
        return list(_yaml_texts(file, source, kinds))
    if suffix == ".html":
        return list(_html_texts(file, source, kinds))
    return list(_program_texts(file, source, kinds, _PYTHON if suffix == ".py" else _C))


@functools.cache
def texts():
    """Return all texts of the project."""
    found = []
    for pattern, kinds in SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            file = path.relative_to(ROOT).as_posix()
            if not LEFT_OUT.match(file):
                found += read(file, path.read_text(encoding="utf-8"), kinds)
    return tuple(found)


@functools.cache
def _compiled(rules):
    """Return a pattern that matches, without taking a character, where a rule may, and the patterns of each rule."""
    anywhere = re.compile(r"\b(?=" + "|".join(f"(?:{rule.pattern})" for rule in rules) + ")")
    return anywhere, [(rule, re.compile(rule.pattern), rule.keep and re.compile(rule.keep)) for rule in rules]


def hits_in(text, rules=RULES):
    """Return the hits of a tuple of rules in one text, in the order of the text."""
    anywhere, compiled = _compiled(rules)
    place = "code" if text.kind == "tests" else text.kind
    found = []
    for start in (match.start() for match in anywhere.finditer(text.prose)):
        for rule, pattern, keep in compiled:
            match = place in rule.where and pattern.match(text.prose, start)
            if match and not (keep and any(k.start() <= start < k.end() for k in keep.finditer(text.prose))):
                line = text.lines[bisect.bisect_right(text.starts, start) - 1]
                found.append(Hit(rule.name, text.file, line, text.kind, match.group()))
    return found


@functools.cache
def hits():
    """Return all hits in the project."""
    return tuple(hit for text in texts() for hit in hits_in(text))


@functools.cache
def counts():
    """Return the numbers of hits, ``{group: {rule: number}}``."""
    found = {"project": collections.Counter(), "tests": collections.Counter()}
    for hit in hits():
        found[hit.group][hit.rule] += 1
    return found


def budget():
    """Return the content of ``tests/vocabulary_budget.json``."""
    return json.loads(BUDGET.read_text(encoding="utf-8"))


@functools.cache
def duplicate_classes():
    """Return the names of classes that are defined more than once in the package, sorted."""
    names = collections.Counter()
    for path in (ROOT / "fsm_dyn").rglob("*.py"):
        names.update(re.findall(r"^\s*class (\w+)\b", path.read_text(encoding="utf-8"), re.MULTILINE))
    return tuple(sorted(name for name, number in names.items() if number > 1))


def lower_budget():
    """Lower every number of the budget to what there is, and raise none."""
    allowed = budget()
    for group, found in counts().items():
        fewer = {rule: min(number, found[rule]) for rule, number in allowed[group].items()}
        allowed[group] = {rule: number for rule, number in sorted(fewer.items()) if number}
    allowed["duplicate_classes"] = sorted(set(allowed["duplicate_classes"]) & set(duplicate_classes()))
    BUDGET.write_text(json.dumps(allowed, indent=2) + "\n", encoding="utf-8")


def part_of(file):
    """Return the part of the project that a file belongs to, as the table of ``--table`` names it."""
    pieces = Path(file).parts
    return "/".join(pieces[: 2 if pieces[0] in ("fsm_dyn", "docs") and len(pieces) > 2 else 1])


def _table(shown):
    """Yield the lines of a table of the numbers of hits in each part."""
    hard = {rule.name for rule in RULES if rule.hard}
    numbers = collections.Counter((part_of(hit.file), hit.rule in hard) for hit in shown)
    yield f"{'part':24}{'hard':>8}{'soft':>8}"
    for part in sorted({part for part, _ in numbers}):
        yield f"{part:24}{numbers[part, True]:8}{numbers[part, False]:8}"
    yield f"{'all':24}" + "".join(f"{sum(n for (_, h), n in numbers.items() if h == kind):8}" for kind in (True, False))


def _lines(shown):
    """Yield a line for every hit, file by file."""
    rules = {rule.name: rule for rule in RULES}
    for hit in sorted(shown, key=lambda hit: (hit.file, hit.line)):
        rule = rules[hit.rule]
        yield f"{hit.file}:{hit.line}: {'hard' if rule.hard else 'soft'}: {hit.found!r} -> {rule.instead}"


def main():
    """Print hits, file by file, or the number of hits in each part of the project."""
    parser = argparse.ArgumentParser(prog="python -m tests.vocabulary_hits", description=main.__doc__)
    parser.add_argument("paths", nargs="*", help="files or folders, from the root; by default all but tests")
    parser.add_argument("--hard", action="store_true", help="only rules that allow no hit")
    parser.add_argument("--rule", action="append", help="only this rule, by its name")
    parser.add_argument("--table", action="store_true", help="numbers of hits instead of hits")
    parser.add_argument(
        "--lower-budget", action="store_true", help="lower the budget to what there is, and print nothing"
    )
    options = parser.parse_args()
    if options.lower_budget:
        return lower_budget()
    allowed = {rule.name for rule in RULES if rule.hard or not options.hard} & set(
        options.rule or [r.name for r in RULES]
    )
    roots = [Path(path) for path in options.paths]
    shown = [
        hit
        for hit in hits()
        if hit.rule in allowed
        and (
            any(Path(hit.file).is_relative_to(root) for root in roots)
            if roots
            else hit.kind != "tests" or options.table
        )
    ]
    sys.stdout.writelines(f"{line}\n" for line in (_table if options.table else _lines)(shown))
    return None


if __name__ == "__main__":
    main()
