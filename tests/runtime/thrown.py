"""Approaches with one build of the runtime: ``python -m tests.runtime.thrown LIBRARY THROWS``.

So many throws at every shape and cases of every narrow guard, by every way; a line for each that is wrong, then how
many there were.
"""

import sys

from tests.runtime.runs import use


def main(library, count):
    """Print what the campaigns say about the first cases of each kind."""
    use(library)
    from tests.campaigns import narrow_guards, throws

    total = 0
    for scene in throws.SCENES:
        ways = throws.ways(scene)
        for seed in range(count):
            total += 1
            wrong = throws.trial(scene, seed, way=ways[seed % len(ways)])[1]
            if wrong and wrong[0] != "unjudged":
                print(scene.name, seed, wrong)
    for kind in narrow_guards.KINDS:
        for seed, way in enumerate(narrow_guards.WAYS):
            total += 1
            if wrong := narrow_guards.trial(kind, seed, way)[1]:
                print(kind, way, seed, wrong)
    print(total)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
