"""`rag-assets import`: its options; the work is in `importing`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


def _named_paths(
    context: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not (name and equals and path):
            raise click.BadParameter(f"{value!r} is not of the form SPACE_ID=FOLDER")
        if name in paths:
            raise click.BadParameter(f"the space {name!r} is given twice")
        paths[name] = Path(path)
    return paths


def _groups_or_field(text: str) -> Any:
    """`public` or `a,b` are names; `field:metadata.groups` says where they are."""
    if text.startswith("field:"):
        return {"field": text.removeprefix("field:")}
    names = [name.strip() for name in text.split(",")]
    return names[0] if len(names) == 1 else names


@click.command("import")
@click.argument("source_format", metavar="FORMAT")
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--suite", required=True, help="Name of the new suite.")
@click.option(
    "--vectors",
    multiple=True,
    metavar="SPACE_ID=FOLDER",
    callback=_named_paths,
    help="A space and the folder of its doc_vectors.npy, query_vectors.npy, doc_ids.txt and "
    "query_ids.txt; repeatable. Without any, the suite starts with an LSA space.",
)
@click.option(
    "--contract",
    "contracts",
    multiple=True,
    metavar="[SPACE_ID=]FILE",
    help="YAML file with contract fields (provider, model, revision, ...); repeatable. Without a "
    "space it holds for all.",
)
@click.option(
    "--acl",
    metavar="GROUP[,GROUP]|field:PATH",
    help="Who may read the documents: groups, or the field that names them. Nothing is public by "
    "accident: say public if it is. A fixture holds its own rights.",
)
@click.option("--subject-groups", metavar="GROUP[,GROUP]|field:PATH", help="Who asks, likewise.")
@click.option(
    "--column",
    help="The folders of --vectors hold tables (Parquet, Arrow) of corpus and queries, and the "
    "vectors are in this column.",
)
@click.option("--split", "splits", multiple=True, help="Judgement file to use; repeatable; all.")
@click.option(
    "--subgroups", multiple=True, metavar="PATH", help="Query field that names subgroups."
)
@click.option("--source-revision", metavar="TEXT|field:PATH", help="Revision of the documents.")
@click.option(
    "--convert-to",
    "convert_to",
    type=click.Path(path_type=Path),
    help="Also write the collection as a BEIR folder here, with rights and subgroups as metadata; "
    "the suite then reads that.",
)
@click.option("--k", "ks", type=int, multiple=True, help="Cut-off; repeatable.  [default: 10]")
def import_(
    source_format: str,
    path: Path,
    suite: str,
    vectors: dict[str, Path],
    contracts: tuple[str, ...],
    acl: str | None,
    subject_groups: str | None,
    column: str | None,
    splits: tuple[str, ...],
    subgroups: tuple[str, ...],
    source_revision: str | None,
    convert_to: Path | None,
    ks: tuple[int, ...],
) -> None:
    """Make a suite from a collection: check it, write its YAML, and say what to type next.

    FORMAT is beir, trec, mteb, ann_hdf5, vecs, or fixture for a JSON fixture.
    """
    from rag_assets.evaluation import check_ks
    from rag_assets.importing import import_fixture, import_suite, read_contract_file
    from rag_assets.project import project_root, shown_path, suites_folder

    if source_format == "fixture":
        made, corpus = import_fixture(
            path, suite=suite, root=project_root(), defs=suites_folder(), ks=check_ks(ks or (10,))
        )
        click.echo(f"{len(corpus.items)} items, {len(corpus.cases)} queries")
        _say_next(shown_path(made), suite)
        return
    settings: dict[str, Any] = {}
    if acl is not None:
        settings["acl"] = _groups_or_field(acl)
    if subject_groups is not None:
        settings["subject_groups"] = _groups_or_field(subject_groups)
    if splits:
        settings["splits"] = list(splits)
    if subgroups:
        settings["subgroups"] = list(subgroups)
    if source_revision is not None:
        settings["source_revision"] = _groups_or_field(source_revision)
    stated: dict[str, dict[str, Any]] = {}
    for given in contracts:
        space_id, equals, file = given.rpartition("=")
        for name in [space_id] if equals else vectors:
            stated[name] = {**stated.get(name, {}), **read_contract_file(Path(file))}
    imported = import_suite(
        source_format,
        path,
        suite=suite,
        root=project_root(),
        defs=suites_folder(),
        settings=settings,
        vectors=vectors,
        contracts=stated,
        ks=check_ks(ks or (10,)),
        column=column,
        convert_to=convert_to,
    )
    collection = imported.collection
    click.echo(
        f"{collection.document_count} documents, {len(collection.cases)} queries, "
        f"{len(collection.qrels)} judgements"
    )
    for outcome in imported.report.outcomes:
        if outcome.status != "passed":
            sample = f" (e.g. {', '.join(outcome.sample[:3])})" if outcome.sample else ""
            click.echo(f"warning: {outcome.column}: {outcome.observed}{sample}. {outcome.meaning}")
    _say_next(shown_path(imported.file), suite)


def _say_next(file: str, suite: str) -> None:
    click.echo(f"Wrote {file}")
    click.echo(f"Next:  rag-assets run {suite}")
