"""What operators do to many cards at once: walked in chunks, resumable, and the same in a dry run but for the write."""
