"""A Celery worker whose doorbell leaves a trace: `python -m tests.broker.bell_app URL OPTIONS`."""

from __future__ import annotations

import json
import sys

from celery import Celery

from wfcelery.broker.client import connect, key_prefix
from wfcelery.broker.names import DOORBELL_TASK, EXECUTOR_QUEUE


def main(broker_url: str, options: str) -> None:
    transport_options = json.loads(options)
    client = connect(broker_url)
    app = Celery("bells", broker=broker_url, set_as_current=False)
    app.conf.update(
        broker_transport_options=transport_options,
        broker_connection_retry_on_startup=False,
        task_ignore_result=True,
    )

    @app.task(name=DOORBELL_TASK, bind=True, shared=False)  # type: ignore[untyped-decorator] # Celery has no types
    def doorbell(self: object) -> None:
        request = self.request  # type: ignore[attr-defined] # Celery has no types
        client.rpush(
            f"{key_prefix(transport_options)}rung", f"{request.id} {request.delivery_info['redelivered']}"
        )

    app.worker_main(
        [
            "worker",
            "-P",
            "solo",
            "-Q",
            EXECUTOR_QUEUE,
            "-l",
            "warning",
            "--without-gossip",
            "--without-mingle",
            "--without-heartbeat",
        ]
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
