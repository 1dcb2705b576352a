-- One row: one fact about how this release was made (code, data, parameters, libraries, machine).
SELECT
    key,
    value
FROM base.manifest
ORDER BY key
