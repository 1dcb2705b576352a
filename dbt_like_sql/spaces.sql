-- One row: one embedding space and its contract, numbered in declared order.
-- Two spaces with equal contract_signature hold the same kind of vector; space_id is only an alias.
-- status is 'evaluated' or 'not_executed'; a space that was not executed has a status_reason and no
-- results, and every measure of it is absent.
SELECT
    space_no,
    space_id,
    provider,
    model,
    revision,
    dimension,
    metric,
    normalized,
    query_role,
    document_role,
    dtype,
    contract_signature,
    query_prompt,
    document_prompt,
    pooling,
    truncation,
    max_input_tokens,
    derivation,
    derived_from,
    licence,
    looked_up_at,
    looked_up_on,
    status,
    status_reason
FROM base.spaces
ORDER BY space_no
