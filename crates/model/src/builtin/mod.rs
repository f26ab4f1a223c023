//! The built-in objects of every PostgreSQL server: types, casts, functions and operators, per major version.
//!
//! The data come from the system catalogs of real servers 14 to 18 (`cargo xtask builtin`), as static tables that cost
//! nothing at start-up. Extensions are those of PostgreSQL's contrib, from a server 15.

mod data;
mod row;
mod types;
mod volatility;

pub use types::*;
pub use volatility::Volatility;

use crate::version::Target;
use data::{access_methods, casts, extensions, functions, operator_classes, operators, relations, types as type_table};
use pgvet_syntax::ast::FunctionCall;

/// The type of that name in `pg_catalog`, or else in `information_schema`.
pub fn type_by_name(name: &str) -> Option<&'static BuiltinType> {
    equal_range(&type_table::TYPES, |row| row.name.cmp(name)).iter().max_by_key(|row| row.schema == "pg_catalog")
}

/// The type of that name in one of the two system schemas.
pub fn type_in(schema: &str, name: &str) -> Option<&'static BuiltinType> {
    equal_range(&type_table::TYPES, |row| row.name.cmp(name)).iter().find(|row| row.schema == schema)
}

/// The type with that oid.
pub fn type_by_oid(oid: u32) -> Option<&'static BuiltinType> {
    let found = SORTED_OIDS.binary_search(&oid).ok()?;
    Some(&type_table::TYPES[usize::from(type_table::BY_OID[found])])
}

/// The oids of types next to each other: they are looked up more often than anything else.
static SORTED_OIDS: [u32; type_table::BY_OID.len()] = {
    let mut oids = [0; type_table::BY_OID.len()];
    let mut at = 0;
    while at < oids.len() {
        oids[at] = type_table::TYPES[type_table::BY_OID[at] as usize].oid;
        at += 1;
    }
    oids
};

/// Every function, aggregate, window function and procedure of that name in `pg_catalog`, over all majors.
pub fn functions(name: &str) -> &'static [BuiltinFunction] {
    equal_range(&functions::FUNCTIONS, |row| row.name.cmp(name))
}

/// The functions of `pg_catalog` that a call may mean by its name.
pub fn functions_called(call: &FunctionCall) -> &'static [BuiltinFunction] {
    let is_elsewhere = call.schema.as_ref().is_some_and(|schema| schema != "pg_catalog");
    if is_elsewhere { &[] } else { functions(&call.name) }
}

/// Every operator of that name in `pg_catalog`, over all majors.
pub fn operators(name: &str) -> &'static [BuiltinOperator] {
    equal_range(&operators::OPERATORS, |row| row.name.cmp(name))
}

/// The row of `pg_cast` in the version that is modelled.
pub fn cast_in(source: u32, target: u32, version: &Target) -> Option<&'static BuiltinCast> {
    equal_range(&casts::CASTS, |row| (row.source, row.target).cmp(&(source, target)))
        .iter()
        .find(|row| row.majors.contain(version))
}

/// The types that a type becomes without being asked, by a row of `pg_cast` of the version that is modelled.
pub fn implicit_casts_from(source: u32, version: &Target) -> impl Iterator<Item = u32> {
    equal_range(&casts::CASTS, |row| row.source.cmp(&source))
        .iter()
        .filter(|row| row.context == CastContext::Implicit && row.majors.contain(version))
        .map(|row| row.target)
}

/// Whether anything becomes this type without being asked, in any major.
pub fn is_target_of_implicit_cast(target: u32) -> bool {
    casts::CASTS.iter().any(|row| row.target == target && row.context == CastContext::Implicit)
}

/// The row of `pg_cast`, in the newest major that has one.
pub fn cast(source: u32, target: u32) -> Option<&'static BuiltinCast> {
    equal_range(&casts::CASTS, |row| (row.source, row.target).cmp(&(source, target)))
        .iter()
        .max_by_key(|row| row.majors.until)
}

/// The operator classes of an index access method.
pub fn operator_classes(method: &str) -> &'static [OperatorClass] {
    equal_range(&operator_classes::OPERATOR_CLASSES, |row| row.method.cmp(method))
}

/// The default operator class of a built-in type, as PostgreSQL's `GetDefaultOpClass` (src/backend/commands/indexcmds.c)
/// chooses it: of the type itself, or else of one that it is binary-coercible to, preferred types first.
pub fn default_operator_class(method: &str, oid: u32) -> Option<&'static OperatorClass> {
    let oid = base_type(oid);
    let defaults = || operator_classes(method).iter().filter(|class| class.default);
    defaults().find(|class| class.input == oid).or_else(|| {
        let is_preferred = |class: &&OperatorClass| type_by_oid(class.input).is_some_and(|input| input.preferred);
        let compatible = || defaults().filter(|class| is_binary_coercible(oid, class.input));
        compatible().find(is_preferred).or_else(|| compatible().next())
    })
}

/// Whether a value of one type can be used as the other without conversion and implicitly, as `IsBinaryCoercible`
/// (`src/backend/parser/parse_coerce.c`) decides for built-in types.
pub fn is_binary_coercible(source: u32, target: u32) -> bool {
    let source = base_type(source);
    if source == target {
        return true;
    }
    let kind = type_by_oid(source).map(|row| row.kind);
    match target {
        oid::ANY | oid::ANYELEMENT => true,
        oid::ANYARRAY => kind == Some(BuiltinTypeKind::Array),
        oid::ANYENUM => kind == Some(BuiltinTypeKind::Enum),
        oid::ANYRANGE => kind == Some(BuiltinTypeKind::Range),
        oid::ANYMULTIRANGE => kind == Some(BuiltinTypeKind::Multirange),
        oid::RECORD => kind == Some(BuiltinTypeKind::Composite),
        _ => cast(source, target)
            .is_some_and(|cast| cast.method == CastMethod::Binary && cast.context == CastContext::Implicit),
    }
}

/// Whether it is a pseudo-type that represents the types of a call, such as `anyelement` and `anyarray`, but not `any`.
pub fn is_polymorphic(oid: u32) -> bool {
    let is_one = |row: &BuiltinType| row.kind == BuiltinTypeKind::Pseudo && row.name.starts_with("any");
    oid != oid::ANY && type_by_oid(oid).is_some_and(is_one)
}

/// The type under a built-in domain, and any other type as it is.
pub fn base_type(oid: u32) -> u32 {
    match type_by_oid(oid) {
        Some(row) if row.kind == BuiltinTypeKind::Domain => base_type(row.base),
        _ => oid,
    }
}

/// An index access method.
pub fn access_method(name: &str) -> Option<&'static AccessMethod> {
    access_methods::ACCESS_METHODS.iter().find(|row| row.name == name)
}

/// A relation of `pg_catalog` or `information_schema`.
pub fn system_relation(schema: &str, name: &str) -> Option<&'static SystemRelation> {
    equal_range(&relations::RELATIONS, |row| (row.schema, row.name).cmp(&(schema, name))).first()
}

/// Whether a system catalog holds user data, as many rows as there are large objects.
pub fn is_of_large_objects(catalog: &str) -> bool {
    matches!(catalog, "pg_largeobject" | "pg_largeobject_metadata")
}

/// Returns whether an extension that PostgreSQL comes with has a function of this name.
pub fn is_extension_function(name: &str) -> bool {
    extensions::EXTENSIONS.iter().any(|extension| extension.functions.iter().any(|function| function.name == name))
}

/// Returns the volatility of the functions of this name in extensions that PostgreSQL comes with: the least stable.
pub fn extension_function_volatility(name: &str) -> Option<Volatility> {
    let functions = extensions::EXTENSIONS.iter().flat_map(|extension| extension.functions.iter());
    functions.filter(|function| function.name == name).map(|function| function.volatility).max()
}

/// An extension of contrib.
pub fn extension(name: &str) -> Option<&'static Extension> {
    extensions::EXTENSIONS.iter().find(|row| row.name == name)
}

/// Extensions of PostgreSQL that bring a language, or let one read the type of another extension. They make nothing
/// else.
///
/// Source: PostgreSQL 14 to 18, `src/pl/*/*.control` and `contrib/*_plperl*`, `contrib/*_plpython*`.
const LANGUAGES: [&str; 8] =
    ["plperl", "plperlu", "plpgsql", "plpython2u", "plpython3u", "plpythonu", "pltcl", "pltclu"];

/// Whether the extension is one of PostgreSQL, so that what its script makes is known.
pub fn is_of_postgresql(extension_name: &str) -> bool {
    let is_language = |name: &str| LANGUAGES.contains(&name);
    let is_transform = extension_name.split_once('_').is_some_and(|(_, language)| is_language(language));
    extension(extension_name).is_some() || is_language(extension_name) || is_transform
}

/// Whether an extension of PostgreSQL is created in the first schema of the search path unless the statement names
/// another one.
///
/// Source: PostgreSQL 14 to 18, `schema` in `contrib/*/*.control` and `src/pl/*/*.control`.
pub fn is_created_in_search_path(extension_name: &str) -> bool {
    is_of_postgresql(extension_name) && extension_name != "adminpack" && !LANGUAGES.contains(&extension_name)
}

/// The rows for which `order` says that they are equal, in a table sorted by it.
fn equal_range<T>(table: &'static [T], order: impl Fn(&T) -> std::cmp::Ordering) -> &'static [T] {
    let start = table.partition_point(|row| order(row).is_lt());
    let length = table[start..].partition_point(|row| order(row).is_eq());
    &table[start..start + length]
}

/// The oids of types that code names (`src/include/catalog/pg_type.dat`).
pub mod oid {
    macro_rules! oids {
        ($($name:ident = $oid:literal),* $(,)?) => {
            $(pub const $name: u32 = $oid;)*
            #[cfg(test)]
            pub(super) const NAMED: &[(&str, u32)] = &[$((stringify!($name), $oid)),*];
        };
    }

    oids! {
        BOOL = 16, BYTEA = 17, CHAR = 18, NAME = 19, INT8 = 20, INT2 = 21, INT2VECTOR = 22, INT4 = 23, REGPROC = 24,
        TEXT = 25, OID = 26, OIDVECTOR = 30, JSON = 114, XML = 142, POINT = 600, FLOAT4 = 700, FLOAT8 = 701,
        UNKNOWN = 705, MONEY = 790, INET = 869, CIDR = 650, BPCHAR = 1042, VARCHAR = 1043, DATE = 1082, TIME = 1083,
        TIMESTAMP = 1114, TIMESTAMPTZ = 1184, INTERVAL = 1186, TIMETZ = 1266, BIT = 1560, VARBIT = 1562,
        NUMERIC = 1700, REGPROCEDURE = 2202, REGCLASS = 2205, REGTYPE = 2206, RECORD = 2249, CSTRING = 2275,
        ANY = 2276, ANYARRAY = 2277, VOID = 2278, TRIGGER = 2279, EVENT_TRIGGER = 3838, ANYELEMENT = 2283, _RECORD = 2287,
        ANYNONARRAY = 2776, UUID = 2950, ANYENUM = 3500, JSONB = 3802, ANYRANGE = 3831, ANYMULTIRANGE = 4537,
        ANYCOMPATIBLEMULTIRANGE = 4538, ANYCOMPATIBLE = 5077, ANYCOMPATIBLEARRAY = 5078,
        ANYCOMPATIBLENONARRAY = 5079, ANYCOMPATIBLERANGE = 5080, INT4RANGE = 3904, NUMRANGE = 3906, TSRANGE = 3908,
        TSTZRANGE = 3910, DATERANGE = 3912, INT8RANGE = 3926,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::PgVersion;

    #[test]
    fn named_oids_are_those_of_the_servers() {
        for (name, oid) in oid::NAMED {
            let name = name.to_ascii_lowercase();
            assert_eq!(type_by_name(&name).map(|row| row.oid), Some(*oid), "{name}");
            assert_eq!(type_by_oid(*oid).map(|row| row.name), Some(name.as_str()));
        }
    }

    #[test]
    fn tables_are_sorted_for_their_searches() {
        assert!(type_table::TYPES.is_sorted_by_key(|row| (row.name, row.schema)));
        assert!(casts::CASTS.is_sorted_by_key(|row| (row.source, row.target)));
        assert!(functions::FUNCTIONS.is_sorted_by_key(|row| row.name));
        assert!(operators::OPERATORS.is_sorted_by_key(|row| row.name));
        assert!(operator_classes::OPERATOR_CLASSES.is_sorted_by_key(|row| row.method));
        assert!(relations::RELATIONS.is_sorted_by_key(|row| (row.schema, row.name)));
        assert!(type_table::BY_OID.is_sorted_by_key(|index| type_table::TYPES[usize::from(*index)].oid));
    }

    #[test]
    fn volatility_is_that_of_the_major() {
        let volatility = |name, major| {
            let target = Target::new(PgVersion(major));
            functions(name).iter().find(|row| row.majors.contain(&target)).map(|row| row.volatility)
        };
        assert_eq!(volatility("now", 14), Some(Volatility::Stable));
        assert_eq!(volatility("clock_timestamp", 18), Some(Volatility::Volatile));
        assert_eq!(volatility("gen_random_uuid", 14), Some(Volatility::Volatile));
        assert_eq!(volatility("uuidv7", 17), None);
        assert_eq!(volatility("uuidv7", 18), Some(Volatility::Volatile));
    }

    #[test]
    fn default_operator_classes_follow_binary_coercion() {
        let family = |method, name| {
            let row = type_by_name(name).expect(name);
            default_operator_class(method, row.oid).map(|class| class.family)
        };
        assert_eq!(family("btree", "varchar"), Some("text_ops"));
        assert_eq!(family("btree", "regclass"), Some("oid_ops"));
        assert_eq!(family("btree", "cidr"), Some("network_ops"));
        assert_eq!(family("btree", "sql_identifier"), Some("text_ops"));
        assert_eq!(family("btree", "_int4"), Some("array_ops"));
        assert_eq!(family("btree", "json"), None);
        assert_eq!(family("gin", "jsonb"), Some("jsonb_ops"));
    }

    #[test]
    fn extensions_have_their_objects() {
        let citext = extension("citext").expect("citext");
        assert!(citext.types.iter().any(|row| row.name == "citext" && row.category == TypeCategory::String));
        assert!(citext.casts.iter().any(|cast| cast.source == "citext" && cast.target == "text"));
        let uuid = extension("uuid-ossp").expect("uuid-ossp");
        let v4 = uuid.functions.iter().find(|function| function.name == "uuid_generate_v4");
        assert_eq!(v4.map(|function| function.volatility), Some(Volatility::Volatile));
        assert_eq!(extension("earthdistance").map(|row| row.requires), Some(&["cube"][..]));
        assert!(extension("postgis").is_none());
    }

    #[test]
    fn system_relations_and_access_methods_resolve() {
        assert_eq!(system_relation("pg_catalog", "pg_class").map(|row| row.kind), Some(SystemRelationKind::Table));
        assert_eq!(system_relation("information_schema", "tables").map(|row| row.kind), Some(SystemRelationKind::View));
        assert!(system_relation("public", "pg_class").is_none());
        assert!(access_method("btree").is_some_and(|method| method.unique && method.exclude));
        assert!(access_method("gin").is_some_and(|method| !method.unique && !method.exclude));
    }
}
