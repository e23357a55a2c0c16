"""One process that keeps the others of a system alive on one machine: what `wfcelery up` is made of."""
