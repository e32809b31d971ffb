"""Raises and the handlers around them: which cause is hidden, and how the raise is chained to it."""
