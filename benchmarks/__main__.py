"""All benchmarks in one run: python -m benchmarks [--json FILE] [--readme]."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import memory, page, speed
from benchmarks.common import machine, options, report, table

README = Path(__file__).resolve().parents[1] / "README.md"
MARKS = re.compile(r"(<!-- benchmark:start -->\n).*(<!-- benchmark:end -->)", re.DOTALL)


def main() -> None:
    """Run everything; print one table, and put it into the README where asked."""
    parser = options(__doc__)
    parser.add_argument("--readme", action="store_true", help="put the table between the marks in README.md")
    chosen = parser.parse_args()
    # Fresh processes first: nothing of this one's memory or threads is in their way yet.
    results = [*memory.run(), *page.run(), *speed.run()]
    report(results, path=chosen.json)
    if chosen.readme:
        facts = ", ".join(f"{name} {value}" for name, value in machine().items())
        text = f"`make benchmark`, everything in one run; {facts}:\n\n{table(results)}\n"
        README.write_text(
            MARKS.sub(lambda marks: marks[1] + text + marks[2], README.read_text(encoding="utf-8")), encoding="utf-8"
        )


if __name__ == "__main__":
    main()
