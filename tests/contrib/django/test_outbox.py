"""The example's orders and their runs: together or not at all, whatever is down and whoever is killed."""

from __future__ import annotations

import signal
import time

import pytest

from tests.contrib.django.shop import Shop

pytestmark = pytest.mark.xdist_group("django")

PLACE = """
from decimal import Decimal
from orders.placing import place_order
print(place_order("ann", Decimal("{amount}")).pk)
"""


def runs_of(shop: Shop, order: str) -> list[str]:
    return [str(run["id"]) for run in shop.workflows.list(flow="order", key=order)]


def relayed(shop: Shop) -> None:
    """Let relays run until nothing waits."""

    def is_empty() -> bool:
        shop.manage("wfcelery", "relay", "--once")
        return not shop.waiting()

    shop.until(is_empty, "the outbox to be empty")


def test_an_order_is_sent_right_after_its_commit_and_goes_through(shop: Shop) -> None:
    order = shop.does(PLACE.format(amount="20"))
    status, run = shop.order(order)
    assert shop.waiting() == []
    assert shop.workflows.wait(run, 20.0)["status"] == "completed"
    status, _ = shop.order(order)
    assert status == "shipped"
    assert shop.workflows.get(run)["created_by"] == "app:django"
    assert runs_of(shop, order) == [run]


def test_what_is_committed_while_the_broker_is_down_begins_once_when_it_is_back(shop: Shop) -> None:
    shop.stop_broker()
    order = shop.does(PLACE.format(amount="30"))
    status, run = shop.order(order)
    assert status == "new"
    assert shop.waiting() == [run]
    relays = [shop.spawn("relay", "--every", "0.1", ready=None) for _ in range(2)]
    shop.ready(*relays, word="relay: ready.")
    assert shop.waiting() == [run]
    try:
        shop.start_broker()
        shop.until(lambda: not shop.waiting(), "the outbox to be empty")
    finally:
        assert [each.terminate() for each in relays] == [0, 0]
    assert shop.workflows.wait(run, 30.0)["status"] == "completed"
    assert runs_of(shop, order) == [run]
    assert len(shop.events(run, "run_started")) == 1
    assert shop.order(order)[0] == "shipped"


def test_what_is_rolled_back_never_begins(shop: Shop) -> None:
    before = len(shop.workflows.list(limit=1000))
    orders = shop.query("SELECT count(*) FROM orders_order")
    done = shop.within(
        "from django.db import transaction\n"
        "from wfcelery.contrib.django import start\n"
        "from orders.models import Order\n"
        "with transaction.atomic():\n"
        "    order = Order.objects.create(customer='ann', amount=1)\n"
        "    given = {'order': order.pk, 'customer': 'ann', 'amount': 1}\n"
        "    print(start('order', given, outbox=True).id, start('order', given).id)\n"
        "    raise SystemExit('no')\n"
    )
    assert done.returncode == 1, done.stderr
    for run in done.stdout.split():
        assert run not in {str(each["id"]) for each in shop.workflows.list(limit=1000)}
    assert shop.waiting() == []
    assert len(shop.workflows.list(limit=1000)) == before
    assert shop.query("SELECT count(*) FROM orders_order") == orders


def test_a_process_that_is_killed_between_commit_and_send_leaves_one_run_to_the_relay(shop: Shop) -> None:
    killed = shop.within(
        "import os, signal\n"
        "from decimal import Decimal\n"
        "from django.db import transaction\n"
        "from orders.placing import place_order\n"
        "with transaction.atomic():\n"
        "    transaction.on_commit(lambda: os.kill(os.getpid(), signal.SIGKILL))\n"
        "    print(place_order('ann', Decimal('40')).pk, flush=True)\n"
    )
    assert killed.returncode == -signal.SIGKILL
    order = killed.stdout.strip()
    status, run = shop.order(order)
    assert status == "new"
    assert shop.waiting() == [run]
    assert runs_of(shop, order) == []
    relayed(shop)
    assert shop.workflows.wait(run, 20.0)["status"] == "completed"
    assert runs_of(shop, order) == [run]


def test_a_process_that_is_killed_after_the_send_leaves_one_run(shop: Shop) -> None:
    killed = shop.within(
        "import os, signal\n"
        "from decimal import Decimal\n"
        "from django.db import transaction\n"
        "from wfcelery.contrib.django.relay import Rows\n"
        "Rows.remove = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from orders.placing import place_order\n"
        "place_order('ann', Decimal('50'))\n"
    )
    assert killed.returncode == -signal.SIGKILL
    [run] = shop.waiting()
    shop.workflows.wait(run, 20.0)
    relayed(shop)
    assert [each["id"] for each in shop.workflows.list(limit=1000)].count(run) == 1
    assert len(shop.events(run, "run_started")) == 1


def test_a_start_without_the_outbox_is_sent_on_commit_and_at_once_outside(shop: Shop) -> None:
    said = shop.does(
        "from django.db import transaction\n"
        "from wfcelery.contrib.django import start, workflows\n"
        "from wfcelery.errors import NotFound\n"
        "flow = {'name': 'hello', 'start': 'a', 'steps': {'a': {'tool': 'echo', 'args': {}, 'done': True}}}\n"
        "with transaction.atomic():\n"
        "    run = start(flow)\n"
        "    try:\n"
        "        run.get()\n"
        "    except NotFound:\n"
        "        print('not yet')\n"
        "run.wait(20)\n"
        "print(run.status, start(flow).created)\n"
    )
    assert said == "not yet\ncompleted True"


def test_what_could_never_be_sent_writes_nothing(shop: Shop) -> None:
    done = shop.within(
        "from wfcelery.contrib.django import start\nstart('order', {'x': object()}, outbox=True)\n"
    )
    assert "InvalidInput: input.x: is of type object, which is not JSON" in done.stderr
    assert shop.waiting() == []


def test_a_refused_start_stays_with_its_reason_until_somebody_looks(shop: Shop) -> None:
    said = shop.does(
        "from django.core.management import call_command\n"
        "from wfcelery.contrib.django import start\n"
        "from wfcelery.contrib.django.models import Outbox\n"
        "start('no-such-flow', outbox=True)\n"
        "call_command('wfcelery', 'relay', '--once')\n"
        "row = Outbox.objects.get()\n"
        "print(row.next_at, row.error)\n"
        "row.delete()\n"
    )
    reason = "no definition no-such-flow; `wfcelery definitions` lists what there is"
    assert said == f"0 sent, 0 wait, 0 refused\nNone {reason}"


def test_somebody_without_the_permission_starts_nothing(shop: Shop) -> None:
    began = time.time()
    done = shop.within(
        "from django.contrib.auth.models import User\n"
        "from wfcelery.contrib.django import start\n"
        "start('order', {'order': 1, 'customer': 'x', 'amount': 1}, by=User.objects.get(username='carl'))\n"
    )
    assert "Forbidden: carl may not start order (permission start)" in done.stderr
    assert time.time() - began < 30
