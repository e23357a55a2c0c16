"""Takes batches for ever, writing down what it has taken; made to be killed."""

from __future__ import annotations

import sys

from tests.broker.post import NAMES, mailbox, write
from wfcelery.broker.client import connect


def main(url: str, epoch: str) -> None:
    client = connect(url)
    box = mailbox(client, int(epoch))
    while True:
        batch = box.take(7)
        if batch:
            client.rpush(f"{NAMES.prefix}written", *map(write, batch))
            print("written", flush=True)  # noqa: T201 - the sign to kill
            box.done()


if __name__ == "__main__":
    main(*sys.argv[1:])
