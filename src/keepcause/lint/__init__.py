"""Find code that hides why a worker failed to start; standard library only, never the codemod or the command line.

A file's bytes go through the screens (`unparsed`, and `screen` in each room) to a `source` with its `scope`; the `rules`
find what they look for there, with what `chaining`, `lazy`, `pickling` and `structured` know; and `evidence` keeps what
is on a worker-init path. `engine` puts it all together.
"""
