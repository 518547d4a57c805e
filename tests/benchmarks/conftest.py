"""Results of the benchmarks as a page: what each printed, whether it kept its bounds, and on which machine."""

from __future__ import annotations

import ast
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.browser.conftest import browser, new_page, viewed  # noqa: F401 - the latter are fixtures

PEERS = ("numpy", "scipy", "sympy", "llvmlite", "mujoco", "drake")
HEAD = """# Benchmarks

`make bench` writes this page. Ratios are taken in one run, in turns with the peer, so they hold on a busy machine as
well; times are processor seconds unless a line says otherwise. A benchmark that breaks a bound is listed first, and
fails the command.
"""


@pytest.fixture(scope="module")
def chromium():
    """Close the browser before the next file: others start an event loop in this thread."""
    with browser() as one:
        yield one


def pytest_addoption(parser):
    parser.addoption("--page", type=Path, help="write the results of the benchmarks to this page")


def pytest_configure(config):
    if config.getoption("--page"):
        config.pluginmanager.register(Page(config), "page of benchmarks")


class Page:
    """Collects reports, prints each as it comes, and writes the page at the end."""

    def __init__(self, config):
        self.target, self.config, self.begin, self.load = (
            config.getoption("--page"),
            config,
            time.time(),
            os.getloadavg(),
        )
        self.files = {}  # file -> [(name of the benchmark, lines printed, seconds, broken bound)]

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.failed:
            file, _, name = report.nodeid.partition("::")
            lines = [line for line in report.capstdout.splitlines() if line.strip()]
            broken = report.longrepr.reprcrash.message.splitlines()[0] if report.failed else ""
            self.files.setdefault(file, []).append((name, lines, report.duration, broken))
            terminal = self.config.pluginmanager.get_plugin("terminalreporter")
            for line in lines + ([f"broken bound: {broken}"] if broken else []):
                terminal.write_line(f"  {line}")

    def pytest_sessionfinish(self):
        broken = [
            f"- {in_words(name)} (`{file}`): `{why}`"
            for file, found in self.files.items()
            for name, _, _, why in found
            if why
        ]
        minutes = (time.time() - self.begin) / 60.0
        files = f"{len(self.files)} of {len(list(Path(__file__).parent.glob('test_*.py')))}"
        text = [HEAD, *machine(minutes, self.load, files), "", "## Broken bounds", "", *(broken or ["None."])]
        for file, found in self.files.items():
            text += ["", f"## {title(file)}", "", f"`{file}`", "", "| | measured | |", "|---|---|--:|"]
            for name, lines, seconds, why in found:
                shown = "<br>".join(line.strip().replace("|", "\\|") for line in lines) or "within its bounds"
                verdict = "**bound broken**" if why else f"{seconds:.0f} s"
                text.append(f"| {in_words(name)} | {shown} | {verdict} |")
        self.target.write_text("\n".join(text) + "\n", encoding="utf-8")


def in_words(name):
    """Name of a test as words: ``test_two_bodies[chain]`` is 'two bodies, chain'."""
    name, _, case = name.removeprefix("test_").removesuffix("]").partition("[")
    return name.replace("_", " ") + (f", {case}" if case else "")


def title(file):
    """First sentence of the docstring of a file."""
    text = ast.get_docstring(ast.parse(Path(file).read_text(encoding="utf-8"))) or file
    return text.splitlines()[0].rstrip(".:")


def machine(minutes, load, files):
    """Rows of a table: machine, versions, revision, and how busy the machine was."""
    processor = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("model name")[2]
    model = processor.splitlines()[0].strip(" \t:") if processor else platform.machine()
    revision = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    rows = {
        "processor": f"{model}, {os.cpu_count()} cores, {memory:.0f} GB",
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "packages": ", ".join(f"{name} {version(name)}" for name in PEERS),
        "revision, day": f"{revision}, {time.strftime('%Y-%m-%d')}",
        "load of the machine": f"{load[0]:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end",
        "files of benchmarks": f"{files}, {minutes:.0f} minutes",
    }
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())]
