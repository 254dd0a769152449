"""What a chat's pin means: text for its prompt, and how it differs from the workspace now. Pure."""
