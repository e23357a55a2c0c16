"""The pure heart: what a flow is, and what happens next. No clock, no SQL, no Celery, no user code."""
