"""What the commands share: their common options, numbers as people type them, and how results are shown."""
