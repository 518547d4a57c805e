"""The part ``texts``: what the commands print of a model and write of a run; and what they print without a model."""

from tests.oracle.command_line import record_call
from tests.oracle.spans import span_of

COMMANDS = (
    "new", "models", "schema", "check", "verify", "compile", "graph", "equations", "run", "study", "fit", "explain",
    "export", "live", "view", "device", "passivity", "demo",
)  # fmt: skip
EQUATIONS = ("html", "latex", "sympy", "numpy", "c")
FILES = ("--csv", "--save-run", "--all", "--figure", "--motion", "--html", "out/report.html")
GRAPHS = ("dot", "mermaid", "graphml", "json", "transitions", "uppaal")
#: Calls that are refused or answered without a model; what they say is a text like every other.
MISUSE = (
    (), ("--version",), ("nothing",), ("run",), ("run", "nothing"), ("run", "latsch"), ("run", "./none.yaml"),
    ("run", "latch", "--until", "-1"), ("run", "latch", "--until", "soon"), ("run", "latch", "--method", "rk5"),
    ("run", "latch", "--method", "moreau_jean"), ("run", "latch", "--method", "rk4"),
    ("run", "latch", "--strategy", "lazy"), ("run", "latch", "--rtol", "0"), ("run", "latch", "--rtol", "2"),
    ("run", "latch", "--atol", "-1"), ("run", "latch", "--step", "0"), ("run", "latch", "--step", "nan"),
    ("run", "latch", "--set", "m_dor=1"), ("run", "latch", "--set", "m_door"), ("run", "latch", "--set", "m_door=1 m"),
    ("run", "latch", "--set", "m_door=-1"), ("run", "latch", "--input", "pushh=1 N"),
    ("run", "latch", "--input", "push=1 m"), ("run", "latch", "--initial", "z=1"),
    ("run", "latch", "--initial", "mode=shut"), ("run", "latch", "--initial", "x=1 kg"),
    ("run", "latch", "--scenario", "none"), ("run", "latch", "--tolerance", "gapp=1"),
    ("run", "latch", "--tolerance", "gap=-1"), ("run", "latch", "--plot", "everything"),
    ("run", "latch", "--resume", "none.run.json"), ("run", "--resume", "none.run.json", "--until", "1"),
    ("run", "latch", "--rest"), ("run", "latch", "--animation", "x.txt"), ("run", "latch:none"),
    ("run", "latch", "--quiet", "--verbose"), ("run", "latch", "--vary", "x"),
    ("explain", "none.run.json", "--at", "1"), ("explain",),
    ("graph", "latch", "--format", "tiff"), ("graph", "latch", "--out", "x.tiff"),
    ("equations", "latch", "--mode", "shut"), ("equations", "latch", "--format", "word"),
    ("study", "latch"), ("study", "latch", "--vary", "m_door"), ("study", "latch", "--vary", "m_dor=1..2:3"),
    ("study", "latch", "--vary", "m_door=1..2:1"), ("study", "latch", "--sample", "dice"),
    ("study", "latch", "--worst", "none"), ("study", "latch", "--vary", "m_door=1..2:3", "--runs", "3"),
    ("export", "latch"), ("export", "latch", "--to", "fortran", "--out", "x"),
    ("export", "latch", "--to", "fmu2", "--real", "float", "--out", "x"),
    ("export", "latch", "--method", "radau", "--out", "x"), ("export", "latch", "--method", "rk4", "--out", "x"),
    *(
        ("live", "latch", "--no-pacing", "--no-derive", "--duration", "0.001", *options)
        for options in (
            ("--driver", "none"), ("--port", "none"), ("--period", "1"), ("--substeps", "0"), ("--max-force", "-1"),
            ("--passivity", "full"), ("--option", "axes"),
        )
    ),
    ("device",), ("device", "virtual_wall"), ("device", "virtual_wall", "--driver", "none", "--emulate"),
    ("passivity",), ("passivity", "latch", "--damping", "-1"), ("fit", "latch"), ("fit", "latch", "none.csv"),
    ("verify", "nothing"), ("compile", "latch", "--jobs", "0"), ("schema", "--out", "none/none.json"),
    ("new", "none/none.yaml"), ("view", "nothing"),
)  # fmt: skip


def record_general(items, folder):
    """Add the help of every command, what it answers to misuse, the models, the schema, the starter file."""
    record_call(items, "fsm-dyn --help", "--help")
    for command in COMMANDS:
        record_call(items, f"{command} --help", command, "--help")
    for arguments in MISUSE:
        record_call(items, f"fsm-dyn {' '.join(arguments)}", *arguments, folder=folder)
    for arguments in (("models",), ("models", "--json"), ("schema",)):
        record_call(items, " ".join(arguments), *arguments)
    if record_call(items, "new", "new", "mine.yaml", folder=folder):
        items.content("mine.yaml", (folder / "mine.yaml").read_bytes())


def record_texts(items, model, folder):
    """Add the answers of the commands about a model, in the order in which a user meets them."""
    until = f"{span_of(model):g}"
    record_call(items, "check", "check", model)
    record_call(items, "check json", "check", model, "--json")
    record_call(items, "compile json", "compile", model, "--json")
    for kind in GRAPHS:
        record_call(items, f"graph {kind}", "graph", model, "--format", kind)
    record_call(items, "graph json of the command", "graph", model, "--json")
    if record_call(items, "graph svg", "graph", model, "--out", "graph.svg", folder=folder):
        items.content("graph.svg", (folder / "graph.svg").read_bytes())
    for kind in EQUATIONS:
        record_call(items, f"equations {kind}", "equations", model, "--format", kind, "--out", "-")
    record_call(items, "run json", "run", model, "--until", until, "--json")
    record_call(items, "run", "run", model, "--until", until, "--out", "out", *FILES, folder=folder)
    for path in sorted((folder / "out").glob("*")):
        items.content(f"run {path.name}", path.read_bytes())
    saved = folder / "out" / f"{model}.run.json"
    if saved.exists():
        for part in (0.0, 0.5, 1.0):
            record_call(items, f"explain at {part:g}", "explain", saved, "--at", f"{part * float(until):g}")
        record_call(items, "explain json", "explain", saved, "--at", until, "--json")
        record_call(items, "resume", "run", "--resume", saved, "--until", f"{1.25 * float(until):g}", "--json")
