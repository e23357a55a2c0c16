"""What travels between processes: written down, sealed, and hostile until it has been checked."""
