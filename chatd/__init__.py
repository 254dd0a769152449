"""The light control plane: durable chats with model vendors, sub-agents, streams."""
