"""What a clone has for those who maintain the project: measurements against fixed targets, checks, and a Space.

`python -m benchmarks` runs all that is timed.
"""
