"""When to answer and when to say that the documents hold no answer.

A query is answered where its best score reaches the space's threshold. `calibration` chooses the
threshold on the dev split, `threshold` evaluates it once on the test split and applies it, `files`
keeps it, `rows` shows it as tables. Scores of two spaces are not comparable: a threshold belongs to
one contract signature.
"""
