"""Image locations to bytes, each ending in one outcome.

Fetch threads run this code: nothing here but ``limiter`` and ``location`` knows Django, and those two are for the
coordinating thread.
"""
