-- One row: one item of the corpus, in ascending order of item_id (code points).
-- Where spaces disagree about an item, this is the row of the first declared space that holds it.
-- content_sha256 is taken over the UTF-8 bytes of the text (LF line ends, Unicode NFC).
SELECT
    item_id,
    role,
    text,
    acl,
    source_revision,
    content_sha256
FROM base.items
ORDER BY item_no
