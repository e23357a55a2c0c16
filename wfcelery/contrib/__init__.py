"""At home in other people's applications: one part for each framework, loaded only where it is wanted."""
