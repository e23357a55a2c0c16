"""A flow as a picture: layers from top to bottom, drawn as SVG with nothing but what is here.

Reading order: `words` and `lettering` (what is written, and how wide it is) → `layers` → `mesh` (the rows,
with bends for long ways and places for labels) → `crossings` (who stands left of whom) → `placing` (how far
right) → `layout` (boxes and routes) → `svg` and `step_box` with `icons`, `markup` and `style`.
"""
