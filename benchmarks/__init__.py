"""Benchmarks: speed, memory and start of the page against fixed targets. `python -m benchmarks` runs all of them."""
