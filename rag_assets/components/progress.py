"""A logger that prints one line per finished step to stderr, for `rag-assets run`."""

# Dagster reads annotations at run time, so they are not postponed here.

import contextlib
import logging
import sys

import dagster as dg


class _StepLines(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.done = 0

    def emit(self, record: logging.LogRecord) -> None:
        event = getattr(record, "dagster_event", None) or getattr(record, "dagster_meta", {}).get(
            "dagster_event"
        )
        if event is None:
            return
        kind = event.event_type_value
        if kind == "STEP_START":
            self._show(f"… {event.step_key}")
        elif kind == "STEP_SUCCESS":
            seconds = event.step_success_data.duration_ms / 1000
            self._show(f"done {event.step_key} ({seconds:.1f} s)", last=True)
        elif kind in ("STEP_FAILURE", "STEP_SKIPPED"):
            self._show(f"{kind.removeprefix('STEP_').lower()} {event.step_key}", last=True)

    def _show(self, line: str, last: bool = False) -> None:
        # A run goes on when nobody reads its progress any more.
        with contextlib.suppress(OSError):
            # On a terminal the running step is shown and then overwritten by its outcome.
            if sys.stderr.isatty():
                sys.stderr.write("\r\x1b[2K" + line + ("\n" if last else ""))
            elif last:
                sys.stderr.write(line + "\n")
            sys.stderr.flush()


@dg.logger({}, description="One line per finished step on stderr.")
def progress_logger(context: dg.InitLoggerContext) -> logging.Logger:
    logger = logging.Logger("rag_assets.progress", logging.DEBUG)
    logger.addHandler(_StepLines())
    return logger
