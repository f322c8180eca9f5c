"""One stream for one reader, several, and those that come back: bounded, and merged for the slow."""
