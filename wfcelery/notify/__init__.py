"""Telling people: who is meant, what is said, the link of who may decide, and how it is sent."""
