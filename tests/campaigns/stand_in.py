"""A case of a campaign for tests: a module that processes import without the package."""

import os


def good(seed):
    return {"ok": True, "reason": "done", "transitions": seed}


def work(campaign, seed):
    """Case number 3 takes its process with it."""
    if seed == 3:
        os._exit(1)
    return good(seed)
