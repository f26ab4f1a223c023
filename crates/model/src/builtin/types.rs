//! The rows of the tables.

use crate::builtin::Volatility;
use crate::version::Target;

/// The major versions that have an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Majors {
    /// The first major that has it; 0 when 14 has it, and then older ones are assumed to have it too.
    pub since: u8,
    /// The last major that has it; 255 when the newest has it.
    pub until: u8,
}

impl Majors {
    pub const ALL: Self = Self { since: 0, until: u8::MAX };

    /// Whether it exists in the modelled version.
    pub fn contain(self, target: &Target) -> bool {
        (self.since == 0 || target.at_least(self.since)) && (self.until == u8::MAX || !target.at_least(self.until + 1))
    }
}

/// `pg_type.typtype`, with array types told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BuiltinTypeKind {
    Base,
    /// A true array, made for every other type.
    Array,
    Composite,
    Domain,
    Enum,
    Pseudo,
    Range,
    Multirange,
}

/// `pg_type.typcategory` (PostgreSQL's documentation, table "typcategory Codes").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeCategory {
    Array,
    Boolean,
    Composite,
    DateTime,
    Enum,
    Geometric,
    Network,
    Numeric,
    Pseudo,
    Range,
    String,
    Timespan,
    User,
    BitString,
    Unknown,
    Internal,
}

/// A row of `pg_type`.
#[derive(Debug)]
pub struct BuiltinType {
    pub oid: u32,
    pub schema: &'static str,
    pub name: &'static str,
    pub kind: BuiltinTypeKind,
    pub category: TypeCategory,
    /// Preferred within its category.
    pub preferred: bool,
    /// The type of its elements or 0. Fixed-length types such as `point` have one too.
    pub element: u32,
    /// The type of arrays of it or 0.
    pub array: u32,
    /// typlen: bytes, -1 for variable length, -2 for C strings.
    pub length: i16,
    /// The base type of a domain, the subtype of a range, the range of a multirange; else 0.
    pub base: u32,
    /// The modifier that a domain gives its base type.
    pub base_typmod: i32,
    /// A domain with NOT NULL or CHECK.
    pub constrained: bool,
    /// Volatility of its input and output functions.
    pub input: Volatility,
    pub output: Volatility,
    /// Name of its collation, empty where it has none.
    pub collation: &'static str,
    pub majors: Majors,
}

/// `pg_cast.castcontext`: the weakest context in which a cast happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CastContext {
    Implicit,
    Assignment,
    Explicit,
}

/// `pg_cast.castmethod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CastMethod {
    /// The same bytes.
    Binary,
    Function,
    /// Through the text form.
    InOut,
}

/// A row of `pg_cast`. A cast from a type to itself applies a length.
#[derive(Debug)]
pub struct BuiltinCast {
    pub source: u32,
    pub target: u32,
    pub context: CastContext,
    pub method: CastMethod,
    pub volatility: Volatility,
    /// The function's name, empty for other methods.
    pub function: &'static str,
    pub majors: Majors,
}

/// `pg_proc.prokind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionKind {
    Plain,
    Aggregate,
    Window,
    Procedure,
}

/// A row of `pg_proc` in schema `pg_catalog`.
#[derive(Debug)]
pub struct BuiltinFunction {
    pub name: &'static str,
    /// Oids of the input argument types.
    pub arguments: &'static [u32],
    /// The number of arguments, from the last one, that have defaults.
    pub defaults: u8,
    /// The element type of a VARIADIC argument or 0.
    pub variadic: u32,
    pub returns: u32,
    pub returns_set: bool,
    pub volatility: Volatility,
    pub strict: bool,
    pub kind: FunctionKind,
    /// The names of the input arguments where they have some.
    pub argument_names: &'static [&'static str],
    pub majors: Majors,
}

/// A row of `pg_operator`.
#[derive(Debug)]
pub struct BuiltinOperator {
    pub name: &'static str,
    /// The left operand's type or 0 for a prefix operator.
    pub left: u32,
    pub right: u32,
    pub result: u32,
    pub volatility: Volatility,
    pub strict: bool,
    /// The function that implements it.
    pub function: &'static str,
    pub majors: Majors,
}

/// A row of `pg_opclass`.
#[derive(Debug)]
pub struct OperatorClass {
    pub method: &'static str,
    pub name: &'static str,
    pub input: u32,
    pub default: bool,
    pub family: &'static str,
    pub majors: Majors,
}

/// An index access method.
#[derive(Debug)]
pub struct AccessMethod {
    pub name: &'static str,
    pub unique: bool,
    pub exclude: bool,
    pub multicolumn: bool,
    /// Supports ASC, DESC and NULLS FIRST.
    pub order: bool,
    pub include: bool,
    pub majors: Majors,
}

/// `pg_class.relkind` of a system relation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemRelationKind {
    Table,
    Index,
    View,
    Toast,
    CompositeType,
    Sequence,
}

/// A relation of `pg_catalog` or `information_schema`.
#[derive(Debug)]
pub struct SystemRelation {
    pub schema: &'static str,
    pub name: &'static str,
    pub kind: SystemRelationKind,
    pub majors: Majors,
}

/// An extension of PostgreSQL's contrib, as in major 15, with its newest version there.
#[derive(Debug)]
pub struct Extension {
    pub name: &'static str,
    /// Extensions that it needs.
    pub requires: &'static [&'static str],
    pub types: &'static [ExtensionType],
    pub functions: &'static [ExtensionFunction],
    pub operators: &'static [ExtensionOperator],
    pub casts: &'static [ExtensionCast],
    pub operator_classes: &'static [ExtensionOperatorClass],
    /// Tables and views.
    pub relations: &'static [&'static str],
}

/// A type of an extension; its array type has the name with `_` before it.
#[derive(Debug)]
pub struct ExtensionType {
    pub name: &'static str,
    pub kind: BuiltinTypeKind,
    pub category: TypeCategory,
    pub preferred: bool,
    pub input: Volatility,
    pub output: Volatility,
}

/// A function of an extension. Types are named by `pg_type.typname`.
#[derive(Debug)]
pub struct ExtensionFunction {
    pub name: &'static str,
    pub arguments: &'static [&'static str],
    pub defaults: u8,
    /// The last argument is VARIADIC.
    pub variadic: bool,
    pub returns: &'static str,
    pub returns_set: bool,
    pub volatility: Volatility,
    pub strict: bool,
    pub kind: FunctionKind,
}

/// An operator of an extension; the left type is empty for a prefix operator.
#[derive(Debug)]
pub struct ExtensionOperator {
    pub name: &'static str,
    pub left: &'static str,
    pub right: &'static str,
    pub result: &'static str,
    pub volatility: Volatility,
    pub strict: bool,
}

/// A cast of an extension.
#[derive(Debug)]
pub struct ExtensionCast {
    pub source: &'static str,
    pub target: &'static str,
    pub context: CastContext,
    pub method: CastMethod,
    pub volatility: Volatility,
}

/// An operator class of an extension.
#[derive(Debug)]
pub struct ExtensionOperatorClass {
    pub method: &'static str,
    pub name: &'static str,
    pub input: &'static str,
    pub default: bool,
    pub family: &'static str,
}
