"""Commands about time: which allocation of heads is fastest, what a cycle costs, what it would cost elsewhere."""
