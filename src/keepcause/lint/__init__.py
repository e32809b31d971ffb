"""Find code that hides why a worker failed to start; standard library only, never the codemod or the command line.

A file's bytes go through the screens, which read them `unparsed`, to a `source` with its `scope`. There the `rules`
find what they look for, with what `chaining`, `lazy`, `pickling` and `structured` know. Then `evidence` keeps what is
on a worker-init path. The `engine` puts it all together.
"""
