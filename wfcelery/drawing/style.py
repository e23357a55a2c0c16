"""The colours and strokes of the picture: one sheet, for pages and for files that stand alone."""

from __future__ import annotations

from importlib import resources
from typing import Final

CSS: Final = resources.files(__package__).joinpath("graph.css").read_text(encoding="utf-8")
"""The style sheet `graph.css`. It touches nothing outside `.wf-graph`."""
