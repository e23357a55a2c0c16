"""The JSON API under `/api/v1`: everything that the console does, for programs.

Read `table` first: one declaration per operation, from which come its door, its checks and its page in the
OpenAPI document.
"""
