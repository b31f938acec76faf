"""The Django project: settings, URLs and entry points."""
