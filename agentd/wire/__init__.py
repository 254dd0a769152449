"""Models and the JSON-RPC peer of the link; imports only the standard library and pydantic."""
