"""The engine as Celery processes: an executor, workers, beat. Thin: what it decides is decided below."""
