"""Text to token states to vectors."""

DEFAULT_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder of the shipped models; named here so that recipes can be read without torch."""
