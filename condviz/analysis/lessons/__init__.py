"""Computations that only lessons show: the inside of a router, what a subtraction does, points that mislead."""
