//! The PL/pgSQL reader.
