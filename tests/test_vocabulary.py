"""Prose and names keep to docs/glossary.md: replaced words do not come back, tolerated ones may only become fewer."""

import ast
import re
import warnings

import pytest

from tests import vocabulary_hits as vocabulary
from tests.vocabulary_rules import EVERYWHERE, OLD_MODULES, RULES, VAGUE_NAMES, VAGUE_NAMES_LEFT, Rule

PACKAGE = vocabulary.ROOT / "fsm_dyn"
HOW = "list them with: python -m tests.vocabulary_hits"


def found_by(rule, group):
    return [f"{h.file}:{h.line}: {h.found}" for h in vocabulary.hits() if h.rule == rule.name and h.group == group]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_prose(rule):
    allowed = vocabulary.budget()
    project, tests = found_by(rule, "project"), found_by(rule, "tests")
    most = 0 if rule.hard else allowed["project"].get(rule.name, 0)
    assert len(project) <= most, f"write: {rule.instead}; {HOW}\n" + "\n".join(project)
    most = 0 if rule.hard else allowed["tests"].get(rule.name, 0)
    assert len(tests) <= most, f"write: {rule.instead}; {HOW} tests\n" + "\n".join(tests)


def test_budget_names_rules_and_can_be_lowered():
    """A warning lists the numbers that can be lowered; it is no failure, so that removing hits never breaks a build."""
    allowed, found = vocabulary.budget(), vocabulary.counts()
    lower = [
        f"{rule} ({group}): {number} -> {found[group][rule]}"
        for group in ("project", "tests")
        for rule, number in allowed[group].items()
        if found[group][rule] < number
    ]
    lower += [f"class {name}" for name in allowed["duplicate_classes"] if name not in vocabulary.duplicate_classes()]
    if lower:
        warnings.warn(f"python -m tests.vocabulary_hits --lower-budget\n{'; '.join(lower)}", stacklevel=1)
    assert set(allowed["tests"]) | set(allowed["project"]) <= {rule.name for rule in RULES if not rule.hard}


def test_rules_are_well_formed():
    names = [rule.name for rule in RULES]
    assert sorted(set(names)) == sorted(names)
    for rule in RULES:
        assert not re.search(r"(?<!\\)[A-Z]", rule.pattern + rule.keep), f"{rule.name}: texts are in lower case"
        assert set(rule.where) <= set(EVERYWHERE)


def texts_of(file, source, kinds=("code", "messages")):
    return [(text.kind, text.prose.strip()) for text in vocabulary.read(file, source, kinds)]


def test_texts_of_python():
    source = '''"""A module,
    of two lines; ``code`` and 'quotes'.

    >>> a_doctest()
    """
# A comment that
# goes on.
x = 1  # its own
raise Error(f"the mode '{name}' is "
            "unknown") from "key"
def test_a_behaviour(): ...
'''
    assert texts_of("a.py", source) == [
        ("code", "a module, of two lines; ```````` and 'quotes'."),
        ("code", "a comment that goes on."),
        ("code", "its own"),
        ("messages", "the mode '·' is unknown"),
        ("code", "a behaviour"),
    ]


def test_texts_of_other_languages():
    source = '/* One\n   comment. */ puts("a text " \\\n "in parts"); // another\n'
    assert texts_of("a.c", source) == [("code", "one comment."), ("messages", "a text in parts"), ("code", "another")]
    page = '<p title="A title">A text</p><script>var no = "text here";</script>'
    assert texts_of("a.html", page, ("page",)) == [("page", "a title"), ("page", "a text")]
    pages = "A paragraph\nof two lines.\n\n```python\nno text\n```\n\n- An item with `code`\n"
    assert texts_of("a.md", pages, ("docs",)) == [
        ("docs", "a paragraph of two lines."),
        ("docs", "- an item with ``````"),
    ]
    changes = "## 0.2\nThis one.\n\n## 0.1\nNot this one.\n"
    assert texts_of("CHANGELOG.md", changes, ("docs",)) == [("docs", "## 0.2 this one.")]


def test_hits_have_lines_scopes_and_exceptions():
    rules = (
        Rule("lies", r"lies\b", "", True, ("code",), keep=r"lies on a line"),
        Rule("two words", r"two words\b", "", True),
    )
    source = '"""Here two\n   words; it lies.\n\n   A point lies on a line.\n   """\nx = "it lies"\n'
    found = [
        h for text in vocabulary.read("a.py", source, ("code", "messages")) for h in vocabulary.hits_in(text, rules)
    ]
    assert [(hit.rule, hit.line) for hit in found] == [("two words", 1), ("lies", 2)]


def definitions(tree):
    """Yield the names of functions, methods and fields of a module with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.target.id, field.lineno


def test_no_function_method_or_field_has_a_vague_name():
    vague = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if re.search(rf"^\s*((async )?def |)({'|'.join(VAGUE_NAMES)})\b\s*[(:]", source, re.MULTILINE):
            named = definitions(ast.parse(source))
            vague += [f"{path.relative_to(PACKAGE)}: {name}" for name, _ in named if name in VAGUE_NAMES]
    assert set(vague) <= VAGUE_NAMES_LEFT, "name what it is"
    assert set(vague) == VAGUE_NAMES_LEFT, "take what is gone out of VAGUE_NAMES_LEFT"


def test_no_module_has_an_old_name():
    old = []
    for folder, names in OLD_MODULES.items():
        suffix = ".js" if folder.endswith("js") else ".py"
        for name in names.split():
            path = PACKAGE / folder / name
            old += [
                p.relative_to(PACKAGE).as_posix()
                for p in (path.with_suffix(suffix), path / "__init__.py")
                if p.exists()
            ]
    assert old == []


def test_no_class_name_is_defined_twice():
    allowed = vocabulary.budget()["duplicate_classes"]
    assert set(vocabulary.duplicate_classes()) <= set(allowed), (
        "one name for one thing; allowed are only those of before"
    )


def glossary_tables():
    """Yield the cells of every term of the glossary: term, definition, symbols and names, source."""
    text = (vocabulary.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 4 and cells[0] != "term" and set(cells[0]) != set("-"):
            yield cells


def test_glossary_defines_each_term_once():
    terms = [term.strip() for term, *_ in glossary_tables() for term in re.split("[,;]", term)]
    assert len(terms) > 100
    assert sorted(terms) == sorted(set(terms))


def test_names_in_the_glossary_exist():
    """Keys and names of Python and of the runtime are found where they are defined: a name that has changed fails."""
    places = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.[ch]"), vocabulary.ROOT / "docs" / "language.md"]
    known = set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in places)))
    known |= {name.removeprefix("FSM_") for name in known}
    missing = []
    for term, _, names, _ in glossary_tables():
        for name in re.findall("`([^`]+)`", names):
            for word in re.findall(r"\w+\*?", re.sub("<[^>]*>", "", name)):
                found = any(k.startswith(word.strip("*")) for k in known) if word.endswith("*") else word in known
                missing += [] if found else [f"{term}: {name}"]
    assert missing == []


def test_every_term_of_the_glossary_has_a_source_that_is_listed():
    """Works of the list at the end, or files of the package where the project decides what a word means."""
    text = (vocabulary.ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    listed = [" ".join(entry.split()) for entry in text.split("## Sources")[1].split("\n- ")[1:]]
    assert [term for term, *_, sources in glossary_tables() if not sources.strip()] == []
    cited = {source.strip() for *_, sources in glossary_tables() for source in sources.split(";")}
    files = {source for source in cited if source.startswith("`")}
    assert [file for file in files if not (vocabulary.ROOT / file.strip("`")).is_file()] == []
    for source in sorted(cited - files):
        words = [word for word in re.findall(r"\w+", source) if word not in ("and", "et", "al")]
        assert any(all(word in entry for word in words) for entry in listed), source
    for entry in listed:
        surname = re.match(r"(?:[A-Z][\w-]*\. ?)*([\w-]+)", entry)[1]
        assert any(surname in source for source in cited), f"{entry} is not cited"
