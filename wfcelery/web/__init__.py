"""The web: approval pages, console, JSON API. It reads the tables and sends requests; it writes nothing.

Read `doors` first: every way in is listed there with the permission that it asks for. `guard` stands before
each of them; `identity` says who comes; `desk` is what the pages work with.
"""
