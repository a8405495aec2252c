"""Campaigns of hostile files: correct on the outside, wrong within."""
