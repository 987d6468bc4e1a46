"""Toys of the chapters: controls above a picture that follows."""
