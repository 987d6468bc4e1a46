"""Drawings of an idea, for the text before its code."""
