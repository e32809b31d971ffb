"""A file's bytes before anything is parsed: its logical lines, and what stands around a place."""
