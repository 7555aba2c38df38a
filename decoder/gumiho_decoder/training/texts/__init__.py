"""Texts to train on: documents, conversations, blocks with a loss mask, the target's own continuations."""
