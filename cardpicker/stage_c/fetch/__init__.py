"""Image locations to bytes, each ending in one outcome.

Fetch threads run this code: nothing here but ``limiter``, ``purse``, ``destinations``, ``location`` and ``lockout_watch``
knows Django, and those are for the coordinating thread.
"""
