"""One pane a file, found by its ``PLUGIN``; `order` of the class gives its place and number."""
