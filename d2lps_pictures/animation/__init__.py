"""Schedules that move: chunks travel along cables, with a clock."""
