"""What kind of hash art has: of uploads, and of the catalog's own pictures. Only hashes of one kind are compared."""

from __future__ import annotations

from typing import Final

#: Method, size and crop. Another kind makes every stored hash of art stale.
ART_HASH_KIND: Final = "phash64-art-v2"
