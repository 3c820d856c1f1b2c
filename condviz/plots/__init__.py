"""Figures: a finished result in, a plotly figure out."""
