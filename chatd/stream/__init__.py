"""What watchers see: hints, the part buffer, and one ordered stream per connection."""
