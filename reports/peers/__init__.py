"""The same block in PyTorch, timed on the same device: what a backend's time is a ratio to (docs/peers.md)."""
