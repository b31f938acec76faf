"""A walk over a folder of Google Drive and all that is below it, each folder and each file once.

A folder that is not to be seen makes the walk partial: which cards lay in it is not known, so none may be missed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cardpicker.sources.drive_address import DRIVE_ID, DriveFolder
from cardpicker.sources.drive_api import DriveApi, JsonObject, RefusedError
from cardpicker.sources.drive_files import FOLDER, SHORTCUT, card_of, resource_key_of
from cardpicker.sources.errors import ListingError
from cardpicker.sources.kinds import ListedCard, ListingProblem


@dataclass(slots=True, kw_only=True)
class DriveWalk:
    """One walk; after it, ``folders`` are those that were seen whole, ``unseen`` those that were not.

    ``since`` narrows the walk in folders of ``known`` to what was created or modified after it, an RFC 3339 moment.
    """

    api: DriveApi
    since: str = ""
    known: Collection[str] = frozenset()
    folders: set[str] = field(default_factory=set)
    unseen: set[str] = field(default_factory=set)
    files: int = 0
    _visited: set[str] = field(default_factory=set)
    _seen: set[str] = field(default_factory=set)
    _waiting: deque[tuple[DriveFolder, str]] = field(default_factory=deque)

    def entries(self, root: DriveFolder) -> Iterator[ListedCard | ListingProblem]:
        """Yield what lies below ``root``.

        Raises:
            ListingError: the root is not to be seen, or any page could not be had.
        """
        self._check_root(root)
        self._enter(root, "")
        while self._waiting:
            folder, path = self._waiting.popleft()
            try:
                for file in self._files(folder, path):
                    yield from self._entry(file, path)
            except RefusedError as error:
                if not path:
                    raise ListingError(f"Google Drive: the folder is not to be seen ({error}).") from error
                self.unseen.add(folder.identifier)
                yield ListingProblem(where=path, detail=f"a folder that is not to be seen ({error})")
            else:
                self.folders.add(folder.identifier)

    def _check_root(self, root: DriveFolder) -> None:
        """Look at the root itself: of a folder that is gone or private, Google lists nothing, as of an empty one."""
        try:
            found = self.api.file(root.identifier, _keys(root))
        except RefusedError as error:
            raise ListingError(
                f"Google Drive: folder {root.identifier} is not to be seen ({error}): share it with everybody who has"
                " the link, or with the service account; an older link's resourcekey belongs to its address."
            ) from error
        if found.get("mimeType") != FOLDER or found.get("trashed"):
            raise ListingError(f"Google Drive: {root.identifier} is no folder, or lies in the trash.")

    def _files(self, folder: DriveFolder, path: str) -> Iterator[JsonObject]:
        token, tokens = "", set[str]()
        while True:
            page = self.api.page(self._query(folder), token, _keys(folder))
            files = page.get("files")
            if not isinstance(files, list):
                raise ListingError(
                    f"Google Drive: a page of {path or 'the folder'} without files; nothing was changed."
                )
            if page.get("incompleteSearch"):
                self.unseen.add(folder.identifier)
            yield from (file for file in files if isinstance(file, dict))
            token = str(page.get("nextPageToken") or "")
            if not token:
                return
            if token in tokens:
                raise ListingError(f"Google Drive: the pages of {path or 'the folder'} never end; nothing was changed.")
            tokens.add(token)

    def _query(self, folder: DriveFolder) -> str:
        query = f"'{folder.identifier}' in parents and trashed = false"
        if not self.since or folder.identifier not in self.known:
            return query
        moved_on = f"modifiedTime > '{self.since}' or createdTime > '{self.since}'"
        return f"{query} and (mimeType = '{FOLDER}' or mimeType = '{SHORTCUT}' or {moved_on})"

    def _entry(self, file: JsonObject, path: str) -> Iterator[ListedCard | ListingProblem]:
        name = str(file.get("name") or "unnamed")
        where = f"{path}{name}"[:400]
        self.files += 1
        match file.get("mimeType"):
            case str() as kind if kind == FOLDER:
                identifier = str(file.get("id") or "")
                if not DRIVE_ID.fullmatch(identifier):
                    self.unseen.add(identifier)
                    yield ListingProblem(where=where, detail="a folder without a usable id")
                    return
                self._enter(
                    DriveFolder(identifier=identifier, resource_key=resource_key_of(file.get("resourceKey"))), where
                )
            case str() as kind if kind == SHORTCUT:
                yield from self._target(file, where, name)
            case _:
                yield from self._once(card_of(file, where, name))

    def _target(self, shortcut: JsonObject, where: str, name: str) -> Iterator[ListedCard | ListingProblem]:
        """Follow a shortcut to its folder or file, under the shortcut's name."""
        details = shortcut.get("shortcutDetails")
        details = details if isinstance(details, dict) else {}
        identifier = str(details.get("targetId") or "")
        target = DriveFolder(identifier=identifier, resource_key=resource_key_of(details.get("targetResourceKey")))
        if not DRIVE_ID.fullmatch(identifier):
            yield ListingProblem(where=where, detail="a shortcut that leads nowhere")
        elif details.get("targetMimeType") == FOLDER:
            yield from self._shortcut_to_folder(target, where)
        elif identifier not in self._seen:
            try:
                found = self.api.file(identifier, _keys(target))
            except RefusedError as error:
                detail = f"a shortcut to a file that is not to be seen ({error})"
                yield ListingProblem(where=where, detail=detail, shields=identifier)
                return
            if found.get("trashed"):
                yield ListingProblem(where=where, detail="a shortcut to a file in the trash")
                return
            yield from self._once(card_of({"resourceKey": target.resource_key, **found}, where, name))

    def _shortcut_to_folder(self, target: DriveFolder, where: str) -> Iterator[ListingProblem]:
        if target.identifier in self._visited:
            return
        try:
            self.api.file(target.identifier, _keys(target))
        except RefusedError as error:
            self.unseen.add(target.identifier)
            yield ListingProblem(where=where, detail=f"a shortcut to a folder that is not to be seen ({error})")
        else:
            self._enter(target, where)

    def _enter(self, folder: DriveFolder, path: str) -> None:
        if folder.identifier not in self._visited:
            self._visited.add(folder.identifier)
            self._waiting.append((folder, f"{path}/" if path else ""))

    def _once(self, entry: ListedCard | ListingProblem) -> Iterator[ListedCard | ListingProblem]:
        """Yield a file the first time that it is met: shortcuts and folders may lead to it again."""
        if isinstance(entry, ListedCard):
            if entry.identifier in self._seen:
                return
            self._seen.add(entry.identifier)
        yield entry


def _keys(folder: DriveFolder) -> dict[str, str]:
    return {folder.identifier: folder.resource_key} if folder.resource_key else {}
