"""Devices made of numbers: the mechanics of a handle, and the firmware or service that a driver talks to."""
