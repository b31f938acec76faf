"""The crash drill: a database, a catalog and a cluster of their own, hurt again and again, and what must hold after each time."""
