"""The HTTP API, one module per area."""
