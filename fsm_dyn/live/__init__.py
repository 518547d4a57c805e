"""The live loop: a mechanism in the hand, tick by tick; what a device may do to it and what it feels."""
