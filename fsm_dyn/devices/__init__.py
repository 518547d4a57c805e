"""Drivers, one file each with one class ``Driver``; the name of the file is the name of the driver."""
