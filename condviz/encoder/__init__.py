"""Text to token states to vectors."""

DEFAULT_BACKBONE = "sentence-transformers/all-MiniLM-L6-v2"
"""The encoder of most shipped models; named here so that recipes can be read without torch."""
BASE_BACKBONE = "sentence-transformers/all-mpnet-base-v2"
"""The encoder of the size that the papers use, 110 M parameters."""
