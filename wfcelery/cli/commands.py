"""The commands, by name. A command's module is loaded when it is called, so that `--help` is quick."""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import Final

import click

from wfcelery.cli.options import debug_option, write_examples

# Why a command needs no permission: it works on this machine only, by what its user can do here anyway.
LOCAL: Final = "local"
# By name: the module, its line in the list, and the permission that it needs, or why it needs none. What
# reads is refused where the tables are opened, `run` before it begins, what writes by the executor.
COMMANDS: Final[dict[str, tuple[str, str, str]]] = {
    "run": ("wfcelery.cli.run", "Run a flow to its end, here and now.", "start"),
    "up": ("wfcelery.cli.up", "Run a whole system here: broker, executor, worker, beat and console.", LOCAL),
    "validate": ("wfcelery.cli.validate", "Check flows and list every fault.", LOCAL),
    "graph": ("wfcelery.cli.graph", "Draw a flow, or a run with the status of its steps.", "read"),
    "define": ("wfcelery.cli.definitions", "Keep flows in the database under their names.", "define"),
    "definitions": ("wfcelery.cli.definitions", "List the flows that are kept.", "read"),
    "start": ("wfcelery.cli.start", "Start a run in the running system.", "start"),
    "ps": ("wfcelery.cli.runs", "List runs, the newest first.", "read"),
    "show": ("wfcelery.cli.runs", "Show a run and its steps.", "read"),
    "watch": ("wfcelery.cli.watch", "Watch a run until it ends.", "read"),
    "explain": ("wfcelery.cli.explain", "Say why a run is not moving.", "read"),
    "events": ("wfcelery.cli.events", "Show what happened in a run.", "read"),
    "approve": ("wfcelery.cli.decisions", "Approve a gate.", "decide"),
    "deny": ("wfcelery.cli.decisions", "Deny a gate.", "decide"),
    "signal": ("wfcelery.cli.signals", "Tell a run something that it waits for.", "signal"),
    "cancel": ("wfcelery.cli.control", "Stop runs for good.", "cancel"),
    "pause": ("wfcelery.cli.control", "Let nothing new start in runs.", "cancel"),
    "resume": ("wfcelery.cli.control", "Let paused runs go on.", "cancel"),
    "retry": ("wfcelery.cli.control", "Reopen failed runs from where they failed.", "retry"),
    "check": ("wfcelery.cli.check", "Prove that the history of every run gives its rows.", "read"),
    "doctor": ("wfcelery.cli.doctor", "Look whether the system is well, and say what to do.", "read"),
    "health": ("wfcelery.cli.health", "Say whether a process makes progress, for health checks.", LOCAL),
    "dead-letters": ("wfcelery.cli.letters", "List messages that could not be handled.", "read"),
    "keys": ("wfcelery.cli.keys", "Print the key that workers are given.", LOCAL),
    "policy": ("wfcelery.cli.policy", "Say who may do what, and make tokens.", LOCAL),
    "executor": ("wfcelery.cli.processes", "Be the executor: the one process that writes.", LOCAL),
    "worker": ("wfcelery.cli.processes", "Run steps.", LOCAL),
    "notifier": (
        "wfcelery.cli.processes",
        "Tell people: of gates, with a link for who may decide, and of how runs end.",
        LOCAL,
    ),
    "beat": ("wfcelery.cli.processes", "Wake the executor every second.", LOCAL),
    "web": ("wfcelery.cli.web", "Serve the console, approval pages and the JSON API.", LOCAL),
    # Its caller is whom WFCELERY_TOKEN stands for, and each of its tools is judged by itself.
    "mcp": ("wfcelery.cli.mcp", "Serve workflows to an agent over stdin and stdout (MCP).", LOCAL),
}
EXAMPLES: Final = (
    "wfcelery run flows/hello.yaml -i name=Ann",
    "wfcelery validate flows/",
    "wfcelery start order -i amount:=900 --wait",
    "wfcelery ps --status failed",
)


class Commands(click.Group):
    """A group that knows the first line of each command without loading it."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples first."""
        write_examples(formatter, EXAMPLES)
        super().format_epilog(ctx, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Name the commands in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - same
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(COMMANDS[cmd_name][0])
        command: click.Command = getattr(module, cmd_name.replace("-", "_"))
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - same
        """List the commands without loading any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line, _) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called; an unknown one is answered with the nearest."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from wfcelery.core.faults import nearest

            hint = nearest(args[0], COMMANDS) or "`wfcelery --help` lists the commands"
            ctx.fail(f"no such command: {args[0]}; {hint}")
        return super().resolve_command(ctx, args)


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - same
    if wanted:
        click.echo(f"wfcelery {importlib.metadata.version('wfcelery')}")
        ctx.exit()


@click.command(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`wfcelery COMMAND --help` explains a command and its options, with examples.",
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@debug_option
def cli() -> None:
    """Durable, approvable, observable workflows: write a YAML file, run it, stop it, go on."""
