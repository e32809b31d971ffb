"""Find code that hides why a worker failed to start; standard library only, never the codemod or the command line."""
