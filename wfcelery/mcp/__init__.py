"""Workflows for agents, by the Model Context Protocol: nine tools, with the rights of who calls.

There is no tool that names approvers, makes links, or goes around a gate. Nothing here loads the SDK before
it is needed, and only `server`, `stdio` and `endpoint` speak to it.
"""
