"""The steps of a round, one verb a file. They raise `Ended(outcome)` for a candidate's ending; the loop catches it."""
