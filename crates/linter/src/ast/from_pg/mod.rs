//! From pg_query nodes to our own.
