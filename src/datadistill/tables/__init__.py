"""Experiments beside each other: what fills the paper's tables."""
