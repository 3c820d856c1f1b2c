"""Run browser tests many times beside a process that keeps one core busy: python -m tests.flaky [--runs N] [TEST ...].

Prints how often each failed, and its first error. A test that fails here has found a race of the page, or waits for the
wrong thing: it is mended, moved below the browser or deleted, and never run again to pass.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections import Counter

import pytest

BUSY = "while True: pass"


class Rounds:
    """A plugin of pytest that runs each test so many times, and counts."""

    def __init__(self, runs: int) -> None:
        """Start with nothing counted."""
        self._runs = runs
        self.passed, self.failed, self.errors = Counter(), Counter(), {}

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        metafunc.fixturenames.append("nth_round")
        metafunc.parametrize("nth_round", range(self._runs))

    @pytest.fixture
    def nth_round(self, request: pytest.FixtureRequest) -> int:
        return request.param

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid.rpartition("[")[0].removeprefix("tests/")
        if report.failed:
            self.failed[test] += 1
            crash = getattr(report.longrepr, "reprcrash", None)
            error = (crash.message if crash else str(report.longrepr)).splitlines()[0]
            self.errors.setdefault(test, error)
            sys.stdout.write(f"\n{report.nodeid}: {error}\n")  # at once: a run takes long
        elif report.when == "call":
            self.passed[test] += 1

    def table(self) -> str:
        """Return a table of the tests: runs, failures, first error."""
        rows = [f"{'test':<90} runs failed  first error"]
        for test in sorted({*self.passed, *self.failed}, key=lambda test: (-self.failed[test], test)):
            runs = self.passed[test] + self.failed[test]
            rows.append(f"{test:<90} {runs:4d} {self.failed[test]:6d}  {self.errors.get(test, '')[:200]}")
        return "\n".join(rows)


def main() -> int:
    """Run, print the table, and return 1 where a test has failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("tests", nargs="*", default=["tests/e2e"])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quiet", action="store_true", help="beside nothing else")
    options = parser.parse_args()
    rounds = Rounds(options.runs)
    busy = None if options.quiet else subprocess.Popen([sys.executable, "-c", BUSY])
    try:
        pytest.main(["-q", "--durations=10", *options.tests], plugins=[rounds])
    finally:
        if busy:
            busy.kill()
            busy.wait()
    sys.stdout.write(rounds.table() + "\n")
    return int(bool(rounds.failed) or not rounds.passed)


if __name__ == "__main__":
    sys.exit(main())
