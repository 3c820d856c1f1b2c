"""Corpora of one's own: texts, their columns and their vectors, in memory or on disk, and what builds them."""
