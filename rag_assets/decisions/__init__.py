"""What people decide about a release, and the space that serves because of it.

`signed` reads and writes the signed decisions of a suite, `checklist` puts them beside what
`examination` finds in the built tables, and `active_space` switches the alias that serving code
reads, where `gates` finds nothing missing.
"""
