"""What was evaluated, when, and what came out: kept for longer than any release.

    <warehouse>/history/<suite>/evaluations/<id>/   one evaluation: its facts and its rows
    <warehouse>/history/<suite>/snapshots/<id>/     what was evaluated, to tell what changed next
    <warehouse>/history/<suite>/blocked/            checks that stopped a run before its tables
    <warehouse>/history/<suite>/heartbeats.jsonl    runs that found everything as it was

Everything is written whole or not at all, and nothing is edited. Evaluations are recorded by the
publisher of a release, which holds the suite's lock.
"""
