"""Where contact forces act, recovered from the constraint rows, and the forces as arrows for films and the page."""
