"""The simulated backend: response surfaces in place of a machine, for tests and demos; labelled wherever it shows."""
