"""Batched encoding on a GPU. Nothing is here yet; `import tokenweir` never imports cupy."""
