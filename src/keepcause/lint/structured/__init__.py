"""What structured errors are made of, in place of plain ones: their fields, and the keys that a text lists."""
