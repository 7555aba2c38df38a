"""The `gumiho` command: one file a command, which parses, calls one public function and shows its result.

`main` assembles the commands of all three parts.
"""
