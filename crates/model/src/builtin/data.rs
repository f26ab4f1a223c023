//! The generated tables.

#[rustfmt::skip]
pub(super) mod access_methods;
#[rustfmt::skip]
pub(super) mod casts;
#[rustfmt::skip]
pub(super) mod extensions;
#[rustfmt::skip]
pub(super) mod functions;
#[rustfmt::skip]
pub(super) mod operator_classes;
#[rustfmt::skip]
pub(super) mod operators;
#[rustfmt::skip]
pub(super) mod relations;
#[rustfmt::skip]
pub(super) mod types;
