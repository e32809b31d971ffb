"""Exception classes that pickle loses on their way to the parent."""
