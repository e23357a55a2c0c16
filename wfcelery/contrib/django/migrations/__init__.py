"""Tables of the application: the outbox."""
