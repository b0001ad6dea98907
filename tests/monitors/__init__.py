"""Tests of the monitors, with a stand-in for the one library that they need."""
