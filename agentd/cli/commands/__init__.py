"""One module per command; loaded only when it is the one that runs."""
