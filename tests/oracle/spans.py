"""Which models and parts are recorded, and for how long they run."""

QUICK = (
    "bouncing_ball", "box_on_table", "felt_drop", "four_bar", "latch", "rolling_disk", "shopping_cart", "virtual_wall",
)  # fmt: skip
SPANS = {"seven_body_mechanism": 0.005, "push_button": 0.2, "chain": 0.3, "rattleback": 0.3, "piano_action": 0.1}  # s
USUAL = 1.0  # s
MOST_STEPS = 1500  # of each run; a longer one ends there, by its outcome


def span_of(model):
    """Return the time that runs of a model cover, s."""
    return SPANS.get(model, USUAL)
