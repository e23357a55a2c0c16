"""`wfcelery keys`."""

from __future__ import annotations

import click

from wfcelery.cli.options import Command, debug_option, output_option, settings_of


@click.command(
    cls=Command,
    examples=(
        "wfcelery keys --new",
        "WFCELERY_WORKER_KEY=$(wfcelery keys) wfcelery worker",
    ),
)
@click.option("--new", is_flag=True, help="Print a new secret key instead.")
@output_option("text", "json")
@debug_option
def keys(*, new: bool, output: str) -> None:
    """Print the key that workers are given.

    It is derived from WFCELERY_SECRET_KEY. Who has it can run steps and report on them, but can neither
    start nor approve anything. With several secret keys there are several, separated by commas.
    """
    import secrets

    from wfcelery.cli.output import print_json
    from wfcelery.wire.keys import worker_keys

    if new:
        secret = secrets.token_urlsafe(32)
        if output == "json":
            print_json({"secret_key": secret})
        else:
            click.echo(secret)
        return
    found = worker_keys(settings_of().secret_key)
    if output == "json":
        print_json({"worker_key": list(found)})
    else:
        click.echo(",".join(found))
