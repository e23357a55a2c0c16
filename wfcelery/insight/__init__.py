"""Understanding a system from what was read of it: why a run waits, how its steps stand, what is not well."""
