"""The single writer: takes messages, decides, writes one transaction per batch, hands steps over."""
