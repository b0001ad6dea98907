"""Tests of toml."""
