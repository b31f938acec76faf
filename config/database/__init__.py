"""A PostgreSQL backend that finds its server when it connects, not when settings are imported."""
