"""Plain messages: any text is one, and this is how it travels."""

from __future__ import annotations

from collections.abc import Sequence

import redis

from wfcelery.broker.mailbox import RedisMailbox
from wfcelery.broker.names import Names
from wfcelery.executor.messages import Message, Unreadable
from wfcelery.executor.ports import Mailbox

NAMES = Names("t:")


def letter(text: str) -> Message:
    return Unreadable(text, "")


def letters(*texts: str) -> list[Message]:
    return [letter(text) for text in texts]


def write(message: Message) -> bytes:
    assert isinstance(message, Unreadable)
    return message.text.encode()


def read(data: bytes) -> Message:
    return letter(data.decode())


def mailbox(client: redis.Redis, epoch: int = 1, *, batch_bytes: int = 2**20) -> RedisMailbox:
    return RedisMailbox(client, NAMES, epoch, read, write, batch_bytes=batch_bytes)


def taken(box: Mailbox, limit: int = 100) -> list[str]:
    return texts(box.take(limit))


def texts(messages: Sequence[Message]) -> list[str]:
    return [write(message).decode() for message in messages]
