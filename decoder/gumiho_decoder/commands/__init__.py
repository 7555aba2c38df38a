"""The `gumiho` command: one file a command, and `main`, which assembles those of all three parts."""
