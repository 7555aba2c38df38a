"""The simulator's commands: one file a command."""
