"""The Search tab."""
