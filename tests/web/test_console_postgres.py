"""The console's own reading, on PostgreSQL."""

from __future__ import annotations

from tests.web.console import confirm, eventually, failing_flow, get, links, loop_flow, words
from tests.web.server import House


def test_the_console_reads_postgres(postgres_house: House) -> None:
    site = postgres_house.site()
    looped = postgres_house.start(loop_flow("on-postgres", 120))
    failed = postgres_house.start(failing_flow("on-postgres-too"))
    eventually(lambda: postgres_house.status(looped) == "paused")
    postgres_house.system.finish([failed])
    with site.browser("stan") as stan:
        listed = links(get(stan, "/runs?user=stan&since=2020-01-01T00:00&until=2999-01-01T00:00").text)
        assert f"/runs/{looped}" in listed
        assert f"/runs/{failed}" in listed
        assert "approval at ask" in words(stan, "/runs?flow=on-postgres")
        assert get(stan, f"/runs?after={looped}").status_code == 200
        assert get(stan, f"/runs?before={failed}").status_code == 200
        page = get(stan, f"/runs/{looped}").text
        assert "120/120" in page
        assert "Waits for the approval of a person" in page
        first = links(get(stan, f"/runs/{looped}/steps/each").text)
        assert f"/runs/{looped}/steps/each?item=99" in first
        second = links(get(stan, f"/runs/{looped}/steps/each?after=99&after_attempt=1").text)
        assert f"/runs/{looped}/steps/each?item=119" in second
        assert "the lorry has no fuel" in words(stan, f"/runs/{failed}/steps/break")
        assert "run started" in words(stan, f"/runs/{looped}/events?before=5")
        assert "on-postgres" in words(stan, "/flows")
        assert "One executor is alive" in words(stan, "/system")
        with stan.stream("GET", f"/runs/{looped}/stream") as answer:
            assert answer.status_code == 200
        assert confirm(stan, f"/runs/{looped}/cancel").status_code == 303
