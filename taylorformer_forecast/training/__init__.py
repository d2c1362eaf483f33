"""Windows from arrays, and training with Lightning."""
