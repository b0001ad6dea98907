"""Tests of the session's folder."""
