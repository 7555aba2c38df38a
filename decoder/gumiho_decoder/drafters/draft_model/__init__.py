"""Any smaller causal LM with the same tokenizer."""

from gumiho_decoder.drafters.draft_model.drafter import DraftModelDrafter

__all__ = ["DraftModelDrafter"]
