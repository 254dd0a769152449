"""The daemon's local HTTP API, one module per area; served on a Unix socket of mode 0600."""
