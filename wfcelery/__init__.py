"""Durable, approvable, observable workflows for Celery."""
