"""The Errors tab."""
