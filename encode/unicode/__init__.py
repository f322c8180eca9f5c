"""Unicode tables, each pinned to the version that the reference libraries use."""
