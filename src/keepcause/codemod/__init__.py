"""Repair what the linter found; the only room that imports LibCST, and besides it linter and configuration."""
