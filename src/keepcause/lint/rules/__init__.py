"""One rule a file; `keepcause.lint.rule.all_rules` finds them by walking this folder."""
