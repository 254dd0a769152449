"""From stored parts to what a model can be sent: repair and shared conversions. Pure."""
