"""The rules: no clock, no disk, no socket, no randomness.

frontier/ decides what is fetched and when; pages/ reads what came. Here is what both and the other rooms need: URLs, scope,
robots rules, freshness, verdicts, who asks, and the bytes of archive records.
"""
