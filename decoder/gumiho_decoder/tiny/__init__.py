"""The embedded models' files, and how they are made from nothing: `python -m gumiho_decoder.tiny.build`."""
