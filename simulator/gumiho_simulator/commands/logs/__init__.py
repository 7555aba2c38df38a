"""Commands about logs: sum one up, read those of others, tell two apart."""
