"""The steps of `gumiho_decoder.tiny.build`: corpus, token stream, target, family of drafters, prompts."""
