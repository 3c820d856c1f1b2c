"""The Map tab."""
