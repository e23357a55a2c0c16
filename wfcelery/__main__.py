"""`python -m wfcelery` is the command `wfcelery`."""

from wfcelery.cli import main

if __name__ == "__main__":
    main()
