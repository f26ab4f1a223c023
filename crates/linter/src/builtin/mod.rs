//! What every PostgreSQL server has: types, casts, functions and operators, per major version.
//!
//! The data come from the system catalogs of real servers 14 to 18 (`cargo xtask builtin`), as static tables that cost
//! nothing at start-up.
