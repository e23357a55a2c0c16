"""wfcelery in a Flask application: settings, starts with an outbox, the console under a path, commands."""

from wfcelery.contrib.flask.extension import WfceleryFlask
from wfcelery.contrib.flask.table import outbox_table

__all__ = ["WfceleryFlask", "outbox_table"]
