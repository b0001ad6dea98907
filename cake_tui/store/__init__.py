"""The session's folder: journal (the truth), snapshot, inbox, lock, telemetry, candidates' files, best.

One process, the engine, writes all of it but ``inbox/``; everybody else reads through the same fold.
"""
