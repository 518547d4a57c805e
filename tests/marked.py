"""Programs that are started so that all their processes can be found, whichever process their parent is by then."""

import contextlib
import os
import subprocess
import sys
import time
import uuid

PATIENT = 90.0  # s


class Marked:
    """Runs programs whose processes, and theirs, carry a mark and have a folder for temporary files of their own."""

    def __init__(self, folder):
        self.mark, self.folder = f"FSM_DYN_TEST={uuid.uuid4()}", folder
        name, value = self.mark.split("=")
        self.environment = {**os.environ, name: value, "TMPDIR": str(folder)}
        self.started = []

    def start(self, *command, **options):
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([sys.executable, *command], env=self.environment, **{**pipes, **options})
        self.started.append(process)
        return process

    def alive(self):
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    marked = self.mark.encode() in file.read()
                with open(f"/proc/{pid}/stat") as file:
                    marked = marked and file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
            except OSError:
                continue
            if marked:
                found.append(int(pid))
        return found

    def running(self, words):
        """The processes whose command lines hold some words."""
        found = []
        for pid in self.alive():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                if words.encode() in file.read():
                    found.append(pid)
        return found

    def all_gone(self):
        until = time.monotonic() + PATIENT
        while set(self.alive()) - {os.getpid()}:
            assert time.monotonic() < until, f"processes {self.alive()} are left"
            time.sleep(0.02)
        return True
