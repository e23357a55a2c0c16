"""What the flow does, run by the workers. Each may be tried twice, and does its work once."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from signup.tables import Account, Signup, engine
from wfcelery import NoRetry, tool


@tool(requires_approval=True)
def make_account(signup: int) -> dict[str, object]:
    """Make the account of a sign-up; never without somebody's approval, whatever the flow says."""
    with Session(engine()) as db, db.begin():
        asked = _signup(db, signup)
        account = db.scalar(select(Account).where(Account.signup == signup))
        if account is None:
            account = Account(signup=signup, email=asked.email)
            db.add(account)
        asked.status = "approved"
        db.flush()
        return {"account": account.id, "email": account.email}


@tool
def decline(signup: int) -> str:
    """Write down that nobody wanted it."""
    with Session(engine()) as db, db.begin():
        asked = _signup(db, signup)
        asked.status = "declined"
        return f"declined {asked.email}"


def _signup(db: Session, number: int) -> Signup:
    found = db.get(Signup, number)
    if found is None:
        raise NoRetry(f"there is no sign-up {number}")
    return found
