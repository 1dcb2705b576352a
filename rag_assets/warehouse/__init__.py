"""The SQL models, the database they are built in, and the releases people query."""
