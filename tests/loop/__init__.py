"""The loop, driven without an engine: events are stamped, decoded again and folded in memory."""
