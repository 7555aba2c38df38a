"""`gumiho theorem`."""
