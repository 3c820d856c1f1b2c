"""Settings for all tests."""

from __future__ import annotations

from hypothesis import settings

# Examples are the same in every run, and a slow machine is no failure.
settings.register_profile("condviz", derandomize=True, deadline=None)
settings.load_profile("condviz")
