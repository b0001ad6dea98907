"""Tests of menu."""
