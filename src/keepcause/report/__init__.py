"""One file per output format, each with `render(reports)`, and what else is printed; imports the linter."""
