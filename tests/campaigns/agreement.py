"""One start of one model by every method, as a case of a campaign."""

from tests.physics import agreement


def methods_agreement(seed):
    """Compare the methods of integration on one start; models take turns."""
    names = list(agreement.MODELS)
    model = names[seed % len(names)]
    found = agreement.methods_agreement(seed // len(names), [model])
    failed = [f"{key.partition('/')[2]}: {words}" for key, (state, words) in found.items() if state == "failed"]
    return {"ok": not failed, "reason": failed[0] if failed else "no method failed", "model": model, "found": found}


def table(entries):
    """The table of methods and models, as markdown."""
    yield "\n" + agreement.ABOUT + "\n\n" + agreement.agreement_table([entry["found"] for entry in entries])
