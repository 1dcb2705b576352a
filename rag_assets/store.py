"""Immutable artifacts between assets: written whole or not at all, never edited in place.

    <root>/store/<suite>/<asset...>/<version>/     the files of one version, named by content
    <root>/store/<suite>/<asset...>/current.json   which version is current
    <root>/store/<suite>/<asset...>/checks/<version>/<check>.json
    <root>/store/<suite>/.runs/<run_id>/<asset...>.json   which version a run itself produced

A run reads what it produced itself, and the current version of everything else, so that two runs
at once never mix. Every write goes to a temporary name first and is then renamed.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rag_assets.errors import StoreError
from rag_assets.quality.report import CheckReport
from rag_assets.whole_files import DRAFT, remove, replace_text, write_folder

RUNS = ".runs"  # no asset is called so
KEPT_VERSIONS = 4
KEPT_SECONDS = 24 * 3600  # a version younger than this may still be in use by a slow run

AssetPath = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of one asset.

    A version names content together with what it was made by and from; `content` names the content
    alone, so that versions that hold the same have one content. `inputs` maps upstream assets
    ("a/b") to the content that was used.
    """

    asset: AssetPath
    version: str
    content: str
    folder: Path
    inputs: Mapping[str, str]
    info: Mapping[str, Any]

    @property
    def name(self) -> str:
        return "/".join(self.asset)

    @property
    def not_executed(self) -> str | None:
        """Why this version holds nothing, if it does: what it needs could not be had."""
        return self.info.get("not_executed")


@dataclass(frozen=True, slots=True)
class Store:
    """The artifacts of one suite. `run_id` names the run that reads and writes, if there is one."""

    root: Path
    suite: str
    run_id: str | None = field(default=None)

    @property
    def _suite_folder(self) -> Path:
        return self.root / "store" / self.suite

    def _asset_folder(self, asset: AssetPath) -> Path:
        return self._suite_folder.joinpath(*asset)

    def write(
        self,
        asset: AssetPath,
        version: str,
        write_files: Callable[[Path], None],
        *,
        content: str | None = None,
        inputs: tuple[Artifact, ...] = (),
        info: Mapping[str, Any] | None = None,
    ) -> Artifact:
        """Store a version and make it current. `write_files` fills an empty folder.

        A version that is already stored is not written again: it is named by its content.
        Without `content`, the version stands for it.
        """
        home = self._asset_folder(asset)
        folder = home / version
        if not _in_use_again(folder):
            record = {
                "version": version,
                "content": content or version,
                "inputs": {artifact.name: artifact.content for artifact in inputs},
                "info": dict(info or {}),
            }

            def write_all(draft: Path) -> None:
                write_files(draft)
                (draft / "artifact.json").write_text(json.dumps(record, indent=1), "utf-8")

            try:
                write_folder(folder, write_all)
            except OSError:  # another run stored the same content first
                if not (folder / "artifact.json").is_file():
                    raise
        pointer = json.dumps({"version": version})
        if self.run_id is not None:
            _put(self._run_file(asset), pointer)
        _put(home / "current.json", pointer)
        self._prune(home)
        return self._artifact(asset, version)

    def read(self, asset: AssetPath) -> Artifact:
        """The version this run produced, else the current one. StoreError if there is none."""
        candidates = [self._asset_folder(asset) / "current.json"]
        if self.run_id is not None:
            candidates.insert(0, self._run_file(asset))
        for pointer in candidates:
            try:
                version = json.loads(pointer.read_text("utf-8"))["version"]
            except FileNotFoundError:
                continue
            return self._artifact(asset, version)
        raise StoreError(
            f"{self.suite}/{'/'.join(asset)} has never been materialized; materialize it first"
        )

    def write_check(self, artifact: Artifact, report: CheckReport) -> None:
        """Record the outcome of a check on one version (the latest evaluation counts)."""
        path = self._check_folder(artifact) / f"{report.check_name}.json"
        _put(path, report.to_json())

    def read_checks(self, artifact: Artifact) -> dict[str, CheckReport]:
        """The latest outcome of every check that ran on exactly this version, by name."""
        files = sorted(self._check_folder(artifact).glob("[!.]*.json"))
        return {file.stem: CheckReport.from_json(file.read_text("utf-8")) for file in files}

    def _artifact(self, asset: AssetPath, version: str) -> Artifact:
        folder = self._asset_folder(asset) / version
        try:
            record = json.loads((folder / "artifact.json").read_text("utf-8"))
        except FileNotFoundError:
            raise StoreError(
                f"{self.suite}/{'/'.join(asset)}: version {version[:12]} is no longer in the "
                "store; materialize it again"
            ) from None
        content = record.get("content", version)  # not yet recorded in older stores
        return Artifact(asset, version, content, folder, record["inputs"], record["info"])

    def _check_folder(self, artifact: Artifact) -> Path:
        return self._asset_folder(artifact.asset) / "checks" / artifact.version

    def _run_file(self, asset: AssetPath) -> Path:
        assert self.run_id is not None
        return self._suite_folder / RUNS / self.run_id / ("--".join(asset) + ".json")

    def _prune(self, home: Path) -> None:
        """Delete old versions, drafts of killed runs and old run pointers, never anything young."""
        horizon = time.time() - KEPT_SECONDS
        versions = sorted(
            (path for path in home.glob("[!.]*") if (path / "artifact.json").is_file()),
            key=_last_used,
            reverse=True,
        )
        stale = versions[KEPT_VERSIONS:]  # the current one was written or taken up just now
        stale += home.glob(f"{DRAFT}*")
        stale += (self._suite_folder / RUNS).glob("*")
        for path in stale:
            try:
                if path.stat().st_mtime < horizon:
                    remove(path)
                    shutil.rmtree(home / "checks" / path.name, ignore_errors=True)
            except FileNotFoundError:
                continue


def _last_used(folder: Path) -> float:
    """Seconds of the epoch; 0 for what another run has removed meanwhile."""
    try:
        return folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _in_use_again(folder: Path) -> bool:
    """Whether a version is stored; if so it counts as young, since somebody builds on it now."""
    try:
        os.utime(folder)
    except FileNotFoundError:
        return False
    return (folder / "artifact.json").is_file()


def _put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, text)
