"""The action log: every call on a desktop with its pictures, kept, shown and performed again."""
