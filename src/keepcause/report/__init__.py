"""One file per output format, each with `render(reports)`; imports the linter's data only."""
