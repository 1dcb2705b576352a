"""The Dagster code location: every suite under defs/, one store, one executor."""

from __future__ import annotations

import warnings
from pathlib import Path

import dagster as dg

from rag_assets.components.progress import progress_logger
from rag_assets.components.suite import StoreResource
from rag_assets.project import warehouse_root

# Dagster warns about its own conversion of a multi-asset's check, and that conditions of one's own
# are new; nothing to act on.
warnings.filterwarnings("ignore", message="Parameter `execution_type` of function `Assets")
warnings.filterwarnings("ignore", message="Parameter `use_user_code_server` of initializer `Autom")


@dg.definitions
def defs() -> dg.Definitions:
    return _runnable(dg.load_from_defs_folder(path_within_project=Path(__file__).parent))


def definitions_in(folder: Path) -> dg.Definitions:
    """The suites of one folder under defs/ alone: what to run one of them needs."""
    tree = dg.ComponentTree.for_project(Path(__file__).parent)
    return _runnable(tree.build_defs(folder))


def _runnable(suites: dg.Definitions) -> dg.Definitions:
    return dg.Definitions.merge(
        suites,
        dg.Definitions(
            resources={"store": StoreResource(root=str(warehouse_root()))},
            # In one process: imports and BLAS threads are shared. See the README for multiprocess.
            executor=dg.in_process_executor,
            loggers={"console": dg.colored_console_logger, "progress": progress_logger},
        ),
    )
