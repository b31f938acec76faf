"""When, how much and whether: the streaming dispatcher that drives Stage C, then Stage D, over micro-batches."""
