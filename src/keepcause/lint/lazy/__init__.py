"""Lazy iterators in error and log texts: which values are lazy, what a text shows, how it is repaired."""
