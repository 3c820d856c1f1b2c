"""Error analysis: where a model disagrees with people, how sure that is, and what the rows have in common."""
