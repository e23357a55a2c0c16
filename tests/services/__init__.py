"""Real servers for the tests, from wheels: no docker, no root, nothing left behind."""
