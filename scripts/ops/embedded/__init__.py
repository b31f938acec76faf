"""An embedded PostgreSQL: the binaries of a wheel or of Debian, started for one project.

Standard library only, because the server must start before the project's packages are importable.
"""
