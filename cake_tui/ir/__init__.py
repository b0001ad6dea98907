"""The IR."""
