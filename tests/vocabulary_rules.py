"""Words that the project's prose replaces, old names that must not come back: the data of ``tests/test_vocabulary.py``.

The terms themselves are in ``docs/glossary.md``.  A rule is *hard* where nothing speaks for the word: it must not
occur.  It is *soft* where some uses are right: their number may only fall (``tests/vocabulary_budget.json``).

Words that have no rule, as they are mostly right in technical English: hence, meanwhile, beforehand, or else, stands
for, goes round, what is left of it, share a load, leave it out, is none, quiet, gentle, last digits.
"""

from typing import NamedTuple

CODE, MESSAGES, PAGE, DOCS = "code", "messages", "page", "docs"
EVERYWHERE = (CODE, MESSAGES, PAGE, DOCS)
PROGRAM = (CODE, MESSAGES)  # the page's texts and the documentation may have the word in another sense
TEXTS = (MESSAGES, PAGE)
NOT_DOCS = (CODE, MESSAGES, PAGE)


class Rule(NamedTuple):
    """A word or phrase that prose replaces.

    Attributes
    ----------
    name : str
        Short and unique: the key of the budget.
    pattern : str
        Regular expression, in lower case, matched where a word begins.
    instead : str
        What to write.
    hard : bool
    where : tuple of str
        Kinds of texts that it applies to: comments and docstrings (``CODE``, those of tests too), texts that programs
        give (``MESSAGES``), the viewer's page (``PAGE``), documentation (``DOCS``).
    keep : str
        Regular expression of phrases in which the word is right; a match that begins within one does not count.
    why : str
        Reason why the rule is soft, narrow or has exceptions, where that is not plain.
    """

    name: str
    pattern: str
    instead: str
    hard: bool
    where: tuple[str, ...] = EVERYWHERE
    keep: str = ""
    why: str = ""


def _hard(name, pattern, instead, where=EVERYWHERE, keep="", why=""):
    return Rule(name, pattern, instead, True, where, keep, why)


def _soft(name, pattern, instead, where=EVERYWHERE, keep="", why=""):
    return Rule(name, pattern, instead, False, where, keep, why)


_AGENTS = (
    _hard("whoever", r"whoever\b", "the user, the caller, the operator, the process"),
    _soft("nobody", r"nobody\b", "no process, no driver, no input; or the passive"),
    _hard("somebody", r"somebody\b", "the user, the operator, a caller"),
    _hard("a person", r"a person (clears|has to|does)\b|until a person\b", "the operator; until it is cleared"),
    _hard("stranger", r"(a|from a) strangers?\b", "untrusted source; untrusted input"),
    _hard("believed", r"is believed\b|nothing (in it )?is (believed|trusted)\b|believes?\b", "is validated; assumes"),
    _hard("feel each other", r"feels? (each other|of (it|them))\b", "are coupled; are uncoupled"),
    _hard("as a hand feels it", r"as a hand feels it\b", "apparent (mass, damping, ...) at the device"),
    _hard("who touches whom", r"who touches whom\b", "the number of active contacts"),
    _soft("wants", r"wants?\b(?! to)", "requires, expects", TEXTS),
    _hard("suffers", r"suffers\b", "undergoes"),
    _hard("a say in", r"(has|have|had) (a|no) say in\b", "influences; does not influence"),
    _soft(
        "tells", r"tells?\b(?! apart)(?! the difference)", "reports, states, shows, indicates", why="people tell people"
    ),
    _hard(
        "is told",
        r"(is|are|was|were|be|been) told\b(?! apart)|told (of|that|so|not|at)\b",
        "is reported, is sent, is notified",
        keep=r"(user|reader|operator|person|caller)s? (is|are|was|were) told",
        why="a person may be told something",
    ),
    _soft(
        "says what",
        r"says?\b(?= (what|how|whether|why|so|where|that|which|it|no more|nothing))",
        "specifies, reports, indicates",
        keep=r"(paper|author|book|standard|specification)s? says?",
    ),
    _soft("said", r"said\b", "stated, declared"),
    _hard("announces", r"announc(e|es|ed|ing)\b", "triggers (an event), reports", PROGRAM),
    _soft("in words", r"in words\b", "as text"),
    _hard("has words", r"(has|have) words\b", "has a message"),
)

_IDIOMS = (
    _hard("in syrup", r"in syrup\b", "by pseudo-transient continuation"),
    _hard("made of numbers", r"made of numbers\b", "emulated, simulated; constant (exponents)"),
    _hard("sign of life", r"signs? of life\b", "heartbeat; progress report"),
    _hard("sounds the alarm", r"sounds? the alarm\b", "falls below the chart threshold"),
    _hard("to be had", r"to be had\b|(is|are) had\b", "is defined, is available, is obtained"),
    _soft("what it takes", r"what (it|they|one) (takes|needs|asks)\b", "the requirement; name it"),
    _soft(
        "in circles", r"round and round\b|in circles\b|in a circle\b", "in a cycle", PROGRAM, keep=r"rolls? in a circle"
    ),
    _hard("comes round", r"comes? round\b", "wraps around"),
    _soft("comes to an end", r"comes? to (an|its|their) end\b", "ends, terminates", why="plain English, yet longer"),
    _hard("puts up with", r"puts? up with\b|makes? do\b", "does not require"),
    _soft("does without", r"do(es)? without\b", "does not require", why="the phrase can be two verbs"),
    _hard("of its own accord", r"of its own accord\b", "without external action"),
    _hard(
        "the other way about",
        r"the other way about\b|to and fro\b|hereabouts\b|all the same\b",
        "reversed; back and forth; locally; nevertheless",
    ),
    _soft("but for", r"but for\b", "except for", why="not for this but for that"),
    _soft("anew", r"anew\b", "again, from the start"),
    _soft("beside", r"besides?\b", "next to (place), in addition to", why="besides, as an adverb, may stay"),
    _soft("whatever", r"whatever\b", "any, all; or name the set"),
    _soft(
        "stands in",
        r"as it stands?\b|as they stand\b|stands? (in|at|behind|beside|under|before|there|here)\b(?! for)",
        "is stored in, is located at, precedes",
        PROGRAM,
    ),
    _soft("stands in for", r"stands? in for\b", "substitutes for, represents", why="what a symbol stands for may stay"),
    _soft(
        "lies in",
        r"lies?\b(?= (at|in|on|beside|near|under|over))",
        "is stored in, is located in",
        PROGRAM,
        keep=r"lies? (at|in|on) (a|an|the|one|their|its) (same |common |[\w-]+ )?"
        r"(point|line|plane|circle|axis|face|curve|outline|cone|disc|origin)",
        why="points lie on lines",
    ),
    _hard(
        "sees to", r"see(s|n)? to\b", "handle, ensure", keep=r"seen to (be|do|have|fire|vanish|open|close|go|move)\b"
    ),
    _soft("is no more", r"is no (more|longer there)\b(?! than)|no news\b", "has terminated; no new data"),
    _hard("at hand", r"at hand\b", "current (state, row, mode)", keep=r"(is|are|was|were)( not)? at hand"),
    _soft("goes on", r"(goes|go|going|went) on\b", "continues, proceeds"),
    _soft(
        "ends in order",
        r"(ends?|ended|closed?|closes|leaves?|left|stops?|stopped)\b(?= (\w+ ){0,3}in order\b(?! of| to))",
        "cleanly",
        PROGRAM,
        why="a list in order is one; only what ends in order ends cleanly",
    ),
    _soft("of its own", r"ones? of (its|their) own\b|of (its|their) own\b(?! accord)", "separate, own"),
    _soft("is what", r"(is|are) what\b", "name the thing directly", why="definitions"),
    _soft(
        "so many",
        r"(so|as) many\b(?= (of|that|axes|steps|rows|stages|bodies|instants|entries))",
        "n, the given number of",
    ),
    _soft("places", r"places?\b(?= (at|in|on|where|which|that))", "location, contact point, index", PROGRAM),
    _hard("how it fared", r"fares?\b|fared\b", "performs; name the measure"),
    _hard(
        "tried and fared",
        r"(what|how) (was|it|each candidate) (tried|fared?)\b",
        "the candidates examined",
        keep=r"was tried to",
    ),
)

_MESSAGES = (
    _soft("no such", r"no such\b", "unknown", TEXTS, keep=r"no such file", why="texts of operating systems"),
    _soft(
        "cannot be",
        r"cannot be(?= *([:;,.]|$))",
        "is not allowed, is invalid, is infeasible",
        why="cannot be found is fine",
    ),
    _hard("hold together", r"does not hold together\b", "is inconsistent or corrupt"),
    _soft("may not", r"may not\b(?= (stand|be read|jump|depend))", "must not; is not allowed to", TEXTS),
    _hard("says nothing", r"says? nothing\b", "has no content; name the missing key", TEXTS),
    _hard("stands twice", r"stands? twice\b|exists? already\b", "is defined twice; already exists", TEXTS),
    _hard("a package more", r"a package more\b|packages more\b", "an additional package", TEXTS),
)

_MECHANICS = (
    _hard(
        "written transition",
        r"written (transition|reset|change|condition)s?\b",
        "user-defined transition, reset, condition",
    ),
    _hard(
        "what may end the mode", r"what (may|can|could) end\b|what ends (the mode|this mode|it)\b", "guards of the mode"
    ),
    _hard(
        "combinations that cannot be",
        r"combinations? (that )?(cannot be|can never be)\b(?! \w+(ed|en)\b)"
        r"|what cannot be\b(?= *([.,;:]|$|is|are|stands))",
        "infeasible modes",
        why="what cannot be taken, found or met is named by its participle",
    ),
    _soft(
        "comes to zero",
        r"(fall|falls|fell|falling|comes?|came) (through|to) zero\b",
        "crosses zero, reaches zero",
        PROGRAM,
    ),
    _soft(
        "train of impacts", r"trains? of impacts\b|(the|a|its) train\b|trains\b", "Zeno sequence", keep=r"gear trains?"
    ),
    _soft(
        "strokes",
        r"strokes?\b",
        "impact of the sequence",
        PROGRAM,
        keep=r"(key|finger|hand|piano)('s)? strokes?|stroke-dasharray",
    ),
    _soft("blows", r"blows?\b", "impact", PROGRAM, keep=r"blow distance"),
    _hard("endless", r"unending\b|endless\b", "non-terminating; unbounded; infinite"),
    _hard("nobody foresaw", r"modes? (that )?nobody foresaw\b|not foreseen\b", "modes first reached during the run"),
    _hard("in force", r"(was|is|are|were) in force\b|in force\b", "active"),
    _hard(
        "meeting",
        r"meetings\b|(the|a|this|each|of|one) meeting\b",
        "contact problem (dynamics), contact kinematics (geometry)",
        PROGRAM,
        why="meeting a guard is a verb",
    ),
    _soft(
        "modes met",
        r"modes? (\w+ ){0,2}(met|meets?)\b|met (on the way|so far|by then)\b",
        "modes reached, visited",
        PROGRAM,
        why="contacts meet, tolerances are met",
    ),
    _hard("repeat each other", r"repeat(s|ed|ing)? (each other|others)\b", "are redundant (linearly dependent)"),
    _hard(
        "rows contradict",
        r"(rows|constraints|contacts|equations|they) (that |which )?(would )?contradict(s|ed|ing)? each other\b",
        "are inconsistent",
        why="keys of a file may contradict each other",
    ),
    _hard("others stand in for", r"that others stand in for\b", "redundant"),
    _soft(
        "implied by others",
        r"implied by (the )?others\b|that others imply\b",
        "linearly dependent on others",
        why="said so in linear algebra",
    ),
    _hard(
        "open forces",
        r"(forces?|multipliers?) (that .{0,20})?left open\b|open forces?\b|leaves? (the )?forces open\b",
        "indeterminate multipliers",
    ),
    _hard("holds both ways", r"holds? both ways\b", "bilateral"),
    _soft("two-sided", r"two[- ]sided\b", "bilateral", why="the C runtime's flag for a slot"),
    _hard("keeps the laws", r"keeps? (the|all|every|no) laws?\b|laws? (is|are) kept\b", "satisfies the contact laws"),
    _hard("energy remedy", r"energy remedy\b|kept part\b", "energy-consistent restitution"),
    _hard("arrested", r"brought to rest at once\b|arrest(s|ed)?\b", "stopped by an impact without collision", PROGRAM),
    _hard("how it rebounds", r"how (it|a contact|contacts|such a contact) rebounds?\b", "the restitution law"),
    _hard("hidden in the speeds", r"hidden in the choice of speeds\b", "eliminated by the choice of speeds"),
    _soft("choice of speeds", r"choices? of (independent|dependent) speeds\b", "chart", why="defines the term"),
    _hard(
        "second route", r"second routes?\b|routes (agree|differ)\b", "independent derivation; derivations agree, differ"
    ),
    _hard(
        "is let go",
        r"(is|are|was|were|child|children|body|mechanism) let go\b",
        "freed (absolute coordinates), disengaged (device)",
        PROGRAM,
    ),
    _soft("led", r"led\b(?! (to|down|here|by))", "driven by prescribed motion"),
    _hard("back onto its rows", r"back onto (its|their|the) rows\b", "onto the constraint manifold"),
    _hard("moves a constraint", r"moves? a constraint\b|moved constraints?\b", "drives a (rheonomic) constraint"),
    _hard("nothing has inertia", r"nothing has inertia\b", "the mass matrix is singular"),
    _soft("without inertia", r"without inertia\b", "massless, inertia-free", why="plain English for a speed or a body"),
    _hard("energy account", r"energy account\b|account of energy\b", "energy balance"),
    _hard(
        "account closes",
        r"account (closes|that closes)\b|closes to\b|went through (it|the account)\b",
        "residual of the energy balance relative to the energy exchanged",
        why="a closure is also a function with bound variables",
    ),
    _soft("bears", r"bears?\b|borne\b", "carries (a load), satisfies", why="a contact bears a load in plain English"),
    _soft(
        "stretch",
        r"stretch(es)?\b(?! (of|out) the)",
        "interval",
        PROGRAM,
        keep=r"springs? stretch(es)?",
        why="springs do",
    ),
    _hard("multipliers of a cycle", r"multipliers of (a|the|this|its) (cycle|return map)\b", "Floquet multipliers"),
    _hard(
        "on line", r"on[- ]line\b", "online", keep=r"on line ([·\d`]|numbers?\b)", why="lines of a file have numbers"
    ),
    _hard("off line", r"off[- ]line\b", "offline"),
    _hard("dead ends", r"dead ends?\b|no way out\b", "terminal modes"),
)

_LIVE = (
    _soft("grip", r"grip\b", "engagement (0 to 1)", NOT_DOCS, why="a person's grip, the grip of a device"),
    _hard("takes hold", r"tak(e|es|ing|en) hold\b|took hold\b", "engages, engaged"),
    _soft(
        "lets go", r"let(s|ting)? go\b(?! of the button)", "disengages; removes the force", NOT_DOCS, why="locks let go"
    ),
    _hard("held model", r"held (model|graph|mechanism|port|loop)s?\b", "coupled model, graph, port; sampled loop"),
    _hard("guard process", r"guard process\b", "watchdog process"),
    _soft(
        "the guard as a process",
        r"the guard\b(?=[^.]{0,60}\b(process|writes|kill|heartbeat|inherit|session|transport|beat)\w*)",
        "watchdog process",
        why="guards of modes may be near such words",
    ),
    _hard("safe frame", r"safe[ _]frame\b", "safe packet"),
    _hard("lateness", r"lateness\b|how late\b|punctual\b", "wake-up latency; on time"),
    _soft(
        "leak",
        r"leaks?\b|taken back\b|takes? back\b|given too much\b",
        "excess energy; dissipated; delivered in excess",
        keep=r"(memory|descriptor|handle)s? leaks?|leaks? (memory|descriptors)",
    ),
    _soft("goes back to", r"go(es|ing)? back\b(?= (to|in))", "rewinds", why="what goes back to an author does"),
    _hard(
        "in the hand",
        r"(in|with) the hand\b",
        "coupled to a device",
        keep=r"(device|handle|paddle|knob|tool)s? (held )?(in|with) the hand",
        why="a device is held in the hand",
    ),
    _soft("twist", r"twist\b", "rotation axis", why="a screw's twist is one"),
    _soft("axes that turn", r"ax[ei]s that turns?\b|those that turn\b", "rotational axes"),
    _hard("stock of modes", r"(the|from|a|in) stock\b|shelf\b|laying in\b", "mode pool"),
    _hard(
        "jerk", r"jerks?\b", "force step", keep=r"jerk \(|third derivative|jerk[- ]limited", why="the third derivative"
    ),
    _hard("rehearsal", r"rehears(al|ed|es|e|ing)\b", "fault injection; dry run"),
)

_VIEWER = (
    _hard("film", r"films?\b|cinema\b|projectors?\b(?! onto)", "recorded run; playback", keep=r"film projectors?"),
    _hard("a run that is over", r"runs? that (is|are) over\b", "finished run; recorded run"),
    _soft("is over", r"is over\b(?<!that is over)", "has ended, has finished", why="plain English, also for a place"),
    _hard("story", r"(the|a) story\b", "event log", PROGRAM),
    _soft("sight", r"sight\b", "frame encoder", PROGRAM, keep=r"(in|of) sight", why="lines of sight"),
)

RULES = (*_AGENTS, *_IDIOMS, *_MESSAGES, *_MECHANICS, *_LIVE, *_VIEWER)

# Names that no function, method or field of the package may have: they do not say what of what.
VAGUE_NAMES = ("told", "tell", "way", "wanted", "given", "held")

# Old names of packages and modules, by folder of fsm_dyn (after renaming): no file may have one again.  A name that is
# kept after all is taken out of here.
OLD_MODULES = {
    "": "compiling driving running pictures recording",
    "programs": "angles closures collecting linearisation parts stored sweeps",
    "automaton": "artefact display graph settling start",
    "plot": "bands ending frames views",
    "analysis": "jumps poincare relabelling runs variation",
    "live": (
        "compiled_loop compiled_marks compiled_pacing compiled_passivity compiled_publishing "
        "compiled_tick control device facing guard holding mapping memory process reading replaying rows "
        "starting stepping stock ticks"
    ),
    "devices": (
        "compiled_hand given hapkit_frames listing rates emulators/body emulators/lines "
        "emulators/starting emulators/hapkit_board"
    ),
    "cli": "analysing compiling explaining files running settings studying verifying watching",
    "page/static/js": "film gauges layers local log modemap packed setup space timing view dragging",
}

#: Vague names that are still there, one for each file: this set may only shrink.
VAGUE_NAMES_LEFT = {
    "live/recording.py: tell",  # of a file, as in io
    "runtime/layouts.py: wanted",
    "run/loop_state.py: held",
    "run/run_files.py: held",
}
