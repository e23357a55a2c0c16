"""Sign-ups that a person approves before the account is made. `flask --app signup` finds `create_app`."""

from signup.application import create_app

__all__ = ["create_app"]
