"""Schedules that move: chunks travel along cables, with a clock.

`story` says which message goes when; `layout`, where the nodes stand;
`timing_panel`, where a message is at which share of its time. `playtime`
makes CSS of that, and `animation` puts panels side by side.
"""
