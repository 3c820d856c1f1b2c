"""All benchmarks in one run: python -m benchmarks [--json FILE] [--docs]."""

from __future__ import annotations

from benchmarks import load, memory, page, speed
from benchmarks.common import options, report


def main() -> None:
    """Run everything; print one table, and put it into docs/results.md where asked."""
    chosen = options(__doc__).parse_args()
    # Fresh processes first: nothing of this one's memory or threads is in their way yet.
    results = [*memory.run(), *page.run(), *speed.run(), *load.run()]
    report(results, chosen, "benchmark")


if __name__ == "__main__":
    main()
