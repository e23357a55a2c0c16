"""Redis or Valkey as mailbox and notice board. It carries bytes; what they mean is known above."""
