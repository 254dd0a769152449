"""Model vendors behind one protocol; one module per vendor."""
