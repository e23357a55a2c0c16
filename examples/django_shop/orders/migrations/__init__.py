"""Tables of the orders."""
