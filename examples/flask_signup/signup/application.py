"""The application: a public form, a page for who has signed up, and the staff's own sign-in."""

from __future__ import annotations

import os
import secrets

import click
from flask import Flask, Request, abort, redirect, render_template, request, session, url_for
from sqlalchemy.orm import Session
from werkzeug.security import check_password_hash, generate_password_hash
from werkzeug.wrappers import Response

from signup.rights import FORM, GROUP, Rights
from signup.tables import Base, Signup, Staff, engine, outbox
from wfcelery.contrib.flask import WfceleryFlask
from wfcelery.core.messages import Kind, Principal
from wfcelery.core.values import Json

CONSOLE = "/flows"


def current_user(request: Request) -> Principal | None:  # noqa: ARG001 - Flask's session is this request's
    """Say who is signed in here: the console and approval pages believe it."""
    name = session.get("staff")
    return Principal(name, groups=(GROUP,)) if name else None


flows = WfceleryFlask(current_user=current_user, outbox_table=outbox, engine=engine)


def create_app() -> Flask:
    """Make the application; `flask --app signup` calls it."""
    app = Flask(__name__)
    app.secret_key = os.environ.get("SIGNUP_SECRET_KEY") or secrets.token_hex(32)
    app.config["WFCELERY"] = {
        "tools": ["signup.tools"],
        "authorize": Rights,
        "url_prefix": CONSOLE,
        "base_url": os.environ.get("SIGNUP_URL", "http://127.0.0.1:5000").rstrip("/") + CONSOLE,
    }
    flows.init_app(app)
    _pages(app)
    _commands(app)
    return app


def _pages(app: Flask) -> None:
    @app.get("/")
    def form() -> str:
        return render_template("form.html")

    @app.post("/")
    def sign_up() -> Response:
        name, email = request.form.get("name", "").strip(), request.form.get("email", "").strip()
        if not name or "@" not in email:
            abort(400, "a name and an e-mail address are needed")
        with Session(engine()) as db, db.begin():
            asked = Signup(name=name, email=email, status="waiting", run="")
            db.add(asked)
            db.flush()
            given: Json = {"signup": asked.id, "name": name, "email": email}
            # In this transaction: there is no sign-up without its run, and no run without its sign-up.
            run = flows.start("signup", given, by=Principal(FORM, Kind.SYSTEM), outbox=db)
            asked.run = run.id
            number = asked.id
        return redirect(url_for("status", number=number), 303)

    @app.get("/signups/<int:number>")
    def status(number: int) -> str:
        with Session(engine()) as db:
            asked = db.get(Signup, number) or abort(404)
            return render_template("status.html", signup=asked)

    @app.route("/staff", methods=["GET", "POST"])
    def staff_sign_in() -> Response | str:
        if request.method == "GET":
            return render_template("staff.html")
        with Session(engine()) as db:
            found = db.get(Staff, request.form.get("name", ""))
        if found is None or not check_password_hash(found.password, request.form.get("password", "")):
            abort(403, "this name and this password do not belong together")
        session.clear()
        session["staff"] = found.name
        return redirect(f"{CONSOLE}/approvals", 303)


def _commands(app: Flask) -> None:
    @app.cli.command("init")
    def init() -> None:
        """Make the tables."""
        Base.metadata.create_all(engine())

    @app.cli.command("add-staff")
    @click.argument("name")
    @click.option("--password", prompt=True, hide_input=True)
    @click.option(
        "--notify", default="", help="Where to write to, as apprise has it: mailto://..., json://..."
    )
    def add_staff(name: str, password: str, notify: str) -> None:
        """Let somebody decide."""
        with Session(engine()) as db, db.begin():
            db.merge(Staff(name=name, password=generate_password_hash(password), notify=notify))
