"""One step of a turn: decide from the history, call the model or run tools."""
