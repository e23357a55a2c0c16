from __future__ import annotations

import pytest

from tests.wire.parts import ANN, OLD_SECRET, REF, RING, RUN, SECRET, WORKER_RING
from wfcelery.core.messages import Decide, StepBegun
from wfcelery.errors import InvalidSettings
from wfcelery.executor.messages import Unreadable
from wfcelery.wire import keys
from wfcelery.wire.keys import Keyring
from wfcelery.wire.seal import Seal

GOOD_ONE = "`wfcelery keys --new` prints a good one"


def test_three_different_keys_are_derived_from_each_secret() -> None:
    both = keys.keyring((SECRET, OLD_SECRET))
    every = {*both.commands, *both.workers, *both.links}
    assert {len(key) for key in every} == {32}
    assert len(every) == 6


def test_derived_keys_are_the_same_in_every_process_and_version() -> None:
    assert keys.worker_keys((SECRET,)) == (
        "9aa3dd55f76789671bc75a8b78db545f491d84d66a12e976a9f712a625a9c8e3",
    )


def test_a_worker_key_as_text_gives_the_derived_key_and_no_other() -> None:
    assert Keyring(workers=RING.workers) == WORKER_RING
    assert keys.worker_keyring((RING.workers[0].hex().upper(),)) == WORKER_RING


def test_a_ring_shows_no_key() -> None:
    assert repr(RING) == "Keyring()"


def test_a_secret_may_be_made_of_any_bytes() -> None:
    assert len(keys.keyring(("\udcff" * 16,)).workers[0]) == 32


@pytest.mark.parametrize(
    ("secrets", "message"),
    [
        ((), f"setting secret_key: is not set; {GOOD_ONE}"),
        (
            (SECRET, "x" * 15),
            f"setting secret_key: has 15 characters, at least 16 are needed; {GOOD_ONE}",
        ),
    ],
)
def test_a_bad_secret_is_refused_with_what_to_do(secrets: tuple[str, ...], message: str) -> None:
    for derive in (keys.keyring, keys.worker_keys):
        with pytest.raises(InvalidSettings) as caught:
            derive(secrets)
        assert str(caught.value) == message


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "a" * 63, "a" * 65, "ä" * 64, SECRET])
def test_a_bad_worker_key_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(InvalidSettings) as caught:
        keys.worker_keyring((text,))
    assert str(caught.value) == (
        "setting worker_key: is not 64 hexadecimal digits; `wfcelery keys` prints it where the secret key is "
        "set, `wfcelery keys --new` prints a good one"
    )


def test_no_worker_key_at_all_is_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidSettings) as caught:
        keys.worker_keyring(())
    assert str(caught.value) == (
        "setting worker_key: is not set; `wfcelery keys` prints the worker key where the secret key is set"
    )


def test_after_a_rotation_the_old_key_verifies_and_the_new_one_signs() -> None:
    before, during, after = (
        Seal(keys.keyring(secrets)) for secrets in ((OLD_SECRET,), (SECRET, OLD_SECRET), (SECRET,))
    )
    begun = StepBegun(REF)
    assert during.read(before.write(begun)) == begun
    assert after.read(during.write(begun)) == begun


def test_a_key_that_was_dropped_is_refused() -> None:
    sealed = Seal(keys.keyring((OLD_SECRET,))).write(StepBegun(REF))
    assert Seal(RING).read(sealed) == Unreadable(
        'w1:...:{"kind":"StepBegun","ref":["01jcqr5h2k7m9n3p4q5r6s7t8v","fetch",-1,1,0]}',
        "envelope: is not sealed by a key for a worker's message: it was forged or changed, or sealed "
        "with a key that is not (or no longer) in use here",
    )


def test_a_worker_cannot_seal_a_decision() -> None:
    with pytest.raises(InvalidSettings) as caught:
        Seal(WORKER_RING).write(Decide("c1", RUN, "gate", approve=True, by=ANN))
    assert str(caught.value) == (
        "setting secret_key: this process has no command key to seal Decide with; requests come from "
        "processes that have WFCELERY_SECRET_KEY, never from workers"
    )


def test_without_a_worker_key_no_report_is_sealed() -> None:
    with pytest.raises(InvalidSettings) as caught:
        Seal(Keyring(commands=RING.commands)).write(StepBegun(REF))
    assert str(caught.value) == (
        "setting worker_key: this process has no worker key to seal StepBegun with; give it "
        "WFCELERY_WORKER_KEY, which `wfcelery keys` prints"
    )
