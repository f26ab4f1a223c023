//! A small schema, and the measured tables that the model is checked against.

use super::{Analyzer, Schema, Scope, TypeChange, check_implies_not_null};
use crate::builtin::{self, Extension, Volatility};
use crate::catalog::{Domain, DomainCheck, EnumLabel, Function, Oid, Parameter, SqlType, TypeDef, TypeKind};
use crate::version::{PgVersion, Target};
use pgvet_syntax::ast::{Ast, Expr, FunctionBody, ParameterMode, Query, TypeName, from_pg};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;
use std::fmt::Write as _;
use std::sync::Arc;

#[derive(Default)]
struct Fake {
    types: Vec<Arc<TypeDef>>,
    functions: Vec<Arc<Function>>,
    extensions: Vec<&'static Extension>,
}

impl Schema for Fake {
    fn type_named(&self, _: Option<&str>, name: &str) -> Option<Oid> {
        self.types.iter().find(|definition| definition.name == name).map(|definition| definition.oid)
    }

    fn type_by_oid(&self, oid: Oid) -> Option<Arc<TypeDef>> {
        self.types.iter().find(|definition| definition.oid == oid).cloned()
    }

    fn functions_named(&self, _: Option<&str>, name: &str) -> Vec<Arc<Function>> {
        self.functions.iter().filter(|function| function.name == name).cloned().collect()
    }

    fn relation_named(&self, _: Option<&str>, name: &str) -> Option<Oid> {
        (name == "pair").then_some(Oid(30000))
    }

    fn columns(&self, relation: Oid) -> Option<Vec<(SmolStr, SqlType)>> {
        let column = |name: &str, oid| (SmolStr::new(name), SqlType::new(Oid(oid)));
        (relation == Oid(30000)).then(|| vec![column("x", builtin::oid::INT4), column("y", builtin::oid::TEXT)])
    }

    fn sql_body(&self, function: &Function) -> Option<Arc<Query>> {
        let FunctionBody::Source { text, .. } = &*function.body else { return None };
        match from_pg::parse_sql(text).ok()?.pop()? {
            Ast::Select(query) => Some(Arc::new(*query)),
            _ => None,
        }
    }

    fn extensions(&self) -> &[&'static Extension] {
        &self.extensions
    }
}

impl Fake {
    fn add_type(&mut self, name: &str, kind: TypeKind) -> Oid {
        let oid = Oid(20000 + 2 * self.types.len() as u32);
        let array = Oid(oid.0 + 1);
        let definition = |oid, name: String, array, kind| {
            Arc::new(TypeDef {
                oid,
                schema: "m".into(),
                name: name.into(),
                array,
                kind,
                transaction: 0,
                modifiers: Vec::new(),
            })
        };
        self.types.push(definition(oid, name.to_owned(), array, kind));
        self.types.push(definition(array, format!("_{name}"), Oid::INVALID, TypeKind::Array { element: oid }));
        oid
    }

    fn add_domain(&mut self, name: &str, base: &str, not_null: bool, check: bool) {
        let target = Target::new(PgVersion(14));
        let base = Analyzer::new(self, &target).resolve_type(&type_name(base));
        assert!(base.is_known());
        let expression = Arc::new(expression("value > 0"));
        let checks = check.then(|| DomainCheck { name: "c".into(), expression, valid: true }).into_iter().collect();
        self.add_type(
            name,
            TypeKind::Domain(Domain { base, root: base.oid, not_null, not_null_name: None, default: None, checks }),
        );
    }

    fn add_function(&mut self, name: &str, parameters: &[(&str, &str)], returns: &str, rest: (&str, Volatility, &str)) {
        let target = Target::new(PgVersion(14));
        let analyzer = Analyzer::new(self, &target);
        let parameters = parameters.iter().map(|(name, sql_type)| {
            let (sql_type, has_default) =
                sql_type.strip_suffix(" default").map_or((*sql_type, false), |name| (name, true));
            let (sql_type, variadic) =
                sql_type.strip_prefix("variadic ").map_or((sql_type, false), |name| (name, true));
            Parameter {
                name: (!name.is_empty()).then(|| SmolStr::new(name)),
                mode: if variadic { ParameterMode::Variadic } else { ParameterMode::In },
                sql_type: analyzer.resolve_type(&type_name(sql_type)),
                has_default,
                default: None,
            }
        });
        let (language, volatility, body) = rest;
        let function = Function {
            oid: Oid(40000 + self.functions.len() as u32),
            schema: "m".into(),
            name: name.into(),
            procedure: false,
            aggregate: false,
            parameters: parameters.collect(),
            returns: analyzer.resolve_type(&type_name(returns)),
            returns_set: false,
            language: language.split(' ').next().unwrap_or_default().into(),
            volatility,
            strict: language.contains("strict"),
            security_definer: language.contains("definer"),
            settings: Vec::new(),
            body: Arc::new(FunctionBody::Source { text: body.into(), range: TextRange::at(0) }),
            checked: Some(true),
            defined_at: None,
            transaction: 0,
        };
        self.functions.push(Arc::new(function));
    }
}

fn schema() -> Fake {
    let mut fake = Fake::default();
    for name in ["color", "mood"] {
        let labels = [EnumLabel { label: "r".into(), added_in: None }].into_iter().collect();
        fake.add_type(name, TypeKind::Enum { labels });
    }
    fake.add_type("pair", TypeKind::Composite { relation: Oid(30000) });
    for (name, base, not_null, check) in [
        ("plain", "int", false, false),
        ("posint", "int", false, true),
        ("nn", "int", true, false),
        ("vc20", "varchar(20)", false, false),
        ("txt", "text", false, false),
        ("plain2", "plain", false, false),
        ("pos2", "posint", false, false),
        ("n102", "numeric(10,2)", false, false),
        ("intarr", "int[]", false, false),
    ] {
        fake.add_domain(name, base, not_null, check);
    }
    use Volatility::{Immutable, Volatile};
    let int = [("", "int")];
    fake.add_function("ident", &int, "int", ("sql", Immutable, "select $1"));
    fake.add_function("imm", &int, "int", ("sql", Immutable, "select $1 + 1"));
    fake.add_function("vol_const", &[], "int", ("sql", Volatile, "select 1"));
    fake.add_function("vol_random", &[], "float8", ("sql", Volatile, "select random()"));
    fake.add_function("stable_now", &[], "timestamptz", ("sql", Volatile, "select now()"));
    fake.add_function("plpgsql_vol", &[], "int", ("plpgsql", Volatile, "begin return 1; end"));
    fake.add_function("strict_vol", &int, "int", ("sql strict", Volatile, "select $1 + 1"));
    fake.add_function("def_vol", &[("x", "int")], "text", ("sql", Volatile, "select coalesce(x::text, 'a')"));
    fake.add_function(
        "two",
        &[("a", "int"), ("b", "int default")],
        "bigint",
        ("sql", Immutable, "select a::bigint + b"),
    );
    fake.add_function("vari", &[("a", "variadic int[]")], "int", ("plpgsql", Immutable, ""));
    fake.add_function("poly", &[("", "anyelement")], "anyelement", ("sql", Immutable, "select $1"));
    fake.add_function("ov", &int, "int", ("plpgsql", Immutable, ""));
    fake.add_function("ov", &[("", "text")], "text", ("plpgsql", Volatile, ""));
    fake.add_function("secdef_const", &[], "int", ("sql definer", Volatile, "select 1"));
    fake.add_function("nested_vol", &[], "int", ("sql", Volatile, "select m.vol_const() + 1"));
    fake
}

fn expression(sql: &str) -> Expr {
    from_pg::parse_expression(sql, TextRange::new(0, sql.len() as u32)).expect(sql)
}

fn type_name(sql: &str) -> TypeName {
    match expression(&format!("x::{sql}")).kind {
        pgvet_syntax::ast::ExprKind::Cast { target, .. } => *target,
        other => panic!("{other:?}"),
    }
}

/// The rows of a fixture without its comments.
fn rows(text: &str) -> impl Iterator<Item = Vec<&str>> {
    text.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

fn majors(list: &str) -> impl Iterator<Item = Target> {
    list.split(',').map(|major| Target::new(PgVersion(major.parse().expect("a major"))))
}

fn scope(analyzer: &Analyzer, columns: &[(&str, &str)]) -> Scope {
    let columns =
        columns.iter().map(|(name, sql_type)| (SmolStr::new(name), analyzer.resolve_type(&type_name(sql_type))));
    Scope::of_columns("t", columns.collect::<Vec<_>>())
}

#[test]
fn type_changes_are_as_measured() {
    let fake = schema();
    let mut wrong = String::new();
    for row in rows(include_str!("../../../../fixtures/types/changes.tsv")) {
        let [from, to, using, timezone, versions, table, index] = row[..] else { panic!("{row:?}") };
        for target in majors(versions) {
            let analyzer = Analyzer::new(&fake, &target);
            let (old, new) = (analyzer.resolve_type(&type_name(from)), analyzer.resolve_type(&type_name(to)));
            if !old.is_known() || !new.is_known() {
                let _ = writeln!(wrong, "{from} or {to} is not known");
                continue;
            }
            let scope = scope(&analyzer, &[("c", from), ("d", "int")]);
            let using_expression = (!using.is_empty()).then(|| expression(using));
            // Abidjan has offset zero today and had another one before 1912.
            let utc = !timezone.starts_with("Europe") && !timezone.starts_with("Africa");
            let change = analyzer.type_change(&scope, "c", old, new, using_expression.as_ref(), utc);
            let told = match change {
                TypeChange::Impossible(code) => (format!("error:{code}"), "-"),
                TypeChange::Rewrite => ("rewrite".to_owned(), if index == "keep" { "build" } else { index }),
                TypeChange::NoRewrite { same_operator_class } => (
                    "no".to_owned(),
                    if index == "-" {
                        "-"
                    } else if same_operator_class {
                        "keep"
                    } else {
                        "build"
                    },
                ),
                TypeChange::Unknown(reason) => (format!("unknown: {reason}"), "-"),
            };
            if (told.0.as_str(), told.1) != (table, index) {
                let _ = writeln!(
                    wrong,
                    "{}: {from} -> {to} [{using}] {timezone}: {table} {index}, not {told:?}",
                    target.version()
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The columns of the table that the expressions were measured in.
const COLUMNS: [(&str, &str); 18] = [
    ("a", "int"),
    ("l", "bigint"),
    ("r", "float8"),
    ("n", "numeric(10,2)"),
    ("t", "text"),
    ("v", "varchar(20)"),
    ("d", "date"),
    ("ts", "timestamp"),
    ("tz", "timestamptz"),
    ("ia", "int[]"),
    ("j", "jsonb"),
    ("jj", "json"),
    ("b", "bytea"),
    ("bl", "boolean"),
    ("u", "uuid"),
    ("e", "color"),
    ("ip", "inet"),
    ("mo", "money"),
];

#[test]
fn expressions_are_as_measured() {
    let fake = schema();
    let mut wrong = String::new();
    for row in rows(include_str!("../../../../fixtures/types/expressions.tsv")) {
        let [sql, versions, sql_type, volatility] = row[..] else { panic!("{row:?}") };
        for target in majors(versions) {
            let analyzer = Analyzer::new(&fake, &target);
            let (expression, scope) = (expression(sql), scope(&analyzer, &COLUMNS));
            let typed = analyzer.infer(&expression, &scope);
            assert_eq!(analyzer.type_of(&expression, &scope), typed.sql_type, "{sql}");
            let mut name = analyzer.format_type(SqlType::new(typed.sql_type.oid));
            if name == "unknown" {
                "text".clone_into(&mut name);
            }
            let allowed: &[Volatility] = match volatility {
                "immutable" => &[Volatility::Immutable],
                "stable" => &[Volatility::Stable],
                "volatile" => &[Volatility::Volatile],
                _ => &[Volatility::Stable, Volatility::Volatile],
            };
            let same_type = without_modifier(sql_type) == name || sql.starts_with("xml");
            // The casts of fields in the cast of a row are not followed.
            let same_volatility =
                allowed.contains(&typed.volatility) || sql.contains("row(") && typed.volatility == Volatility::Stable;
            if !same_type || !same_volatility || !typed.unknown.is_empty() {
                let _ = writeln!(
                    wrong,
                    "{}: {sql}: {sql_type} {volatility}, not {name} {:?} {:?}",
                    target.version(),
                    typed.volatility,
                    typed.unknown
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

fn without_modifier(name: &str) -> String {
    let name = name.strip_prefix("m.").unwrap_or(name);
    match (name.find('('), name.find(')')) {
        _ if name.starts_with("interval") => "interval".to_owned(),
        (Some(open), Some(close)) if name.starts_with("character(") => {
            format!("bpchar{}", &name[close + 1..]).replace(&name[open..=close], "")
        }
        (Some(open), Some(close)) if name.starts_with("bit(") => {
            format!("\"bit\"{}", &name[close + 1..]).replace(&name[open..=close], "")
        }
        (Some(open), Some(close)) => format!("{}{}", &name[..open], &name[close + 1..]),
        _ => name.to_owned(),
    }
}

#[test]
fn types_are_written_as_format_type_writes_them() {
    let fake = schema();
    let target = Target::new(PgVersion(15));
    let analyzer = Analyzer::new(&fake, &target);
    for (written, formatted) in [
        ("int", "integer"),
        ("varchar(20)", "character varying(20)"),
        ("char", "character(1)"),
        ("bpchar", "bpchar"),
        ("numeric(10)", "numeric(10,0)"),
        ("numeric(10,-2)", "numeric(10,-2)"),
        ("timestamptz(3)", "timestamp(3) with time zone"),
        ("timestamp", "timestamp without time zone"),
        ("interval day to second(3)", "interval day to second(3)"),
        ("interval(6)", "interval(6)"),
        ("bit(4)", "bit(4)"),
        ("bit varying(4)", "bit varying(4)"),
        ("text[]", "text[]"),
        ("varchar(10)[][]", "character varying(10)[]"),
        ("\"char\"", "\"char\""),
        ("m.color", "color"),
        ("color[]", "color[]"),
        ("information_schema.sql_identifier", "information_schema.sql_identifier"),
    ] {
        assert_eq!(analyzer.format_type(analyzer.resolve_type(&type_name(written))), formatted, "{written}");
    }
    assert_eq!(analyzer.resolve_type(&type_name("varchar(0)")), SqlType::UNKNOWN);
    assert_eq!(analyzer.resolve_type(&type_name("geometry")), SqlType::UNKNOWN);
    assert_eq!(analyzer.resolve_type(&type_name("numeric(10,2)")).typmod, (10 << 16 | 2) + 4);
}

#[test]
fn what_is_not_known_is_volatile_and_said() {
    let fake = schema();
    let target = Target::new(PgVersion(17));
    let analyzer = Analyzer::new(&fake, &target);
    let typed = analyzer.infer(&expression("no_such(1)"), &Scope::default());
    assert_eq!((typed.volatility, typed.unknown), (Volatility::Volatile, vec!["function no_such".to_owned()]));
    let typed = analyzer.infer(&expression("uuidv7()"), &Scope::default());
    assert!(!typed.unknown.is_empty(), "uuidv7 came with 18");
    let typed = analyzer.infer(&expression("exists (select from pair p where p.x > random())"), &Scope::default());
    assert!(typed.has_subquery && typed.relations == [Oid(30000)] && typed.unknown.is_empty());
    assert_eq!(typed.volatile_function.as_deref(), Some("random"));
    assert!(matches!(
        analyzer.type_change(&Scope::default(), "c", SqlType::UNKNOWN, SqlType::UNKNOWN, None, true),
        TypeChange::Unknown(_)
    ));
}

#[test]
fn extensions_bring_functions_and_casts() {
    let mut fake = schema();
    fake.extensions = ["citext", "uuid-ossp"].into_iter().filter_map(builtin::extension).collect();
    fake.add_type("citext", TypeKind::Base);
    let target = Target::new(PgVersion(16));
    let analyzer = Analyzer::new(&fake, &target);
    let typed = analyzer.infer(&expression("uuid_generate_v4()"), &Scope::default());
    assert_eq!(typed.volatile_function.as_deref(), Some("uuid_generate_v4"));
    let change = |from, to| {
        let (old, new) = (analyzer.resolve_type(&type_name(from)), analyzer.resolve_type(&type_name(to)));
        analyzer.type_change(&Scope::default(), "c", old, new, None, true)
    };
    assert_eq!(change("text", "citext"), TypeChange::NoRewrite { same_operator_class: false });
    assert_eq!(change("citext", "text"), TypeChange::NoRewrite { same_operator_class: false });
    assert_eq!(change("inet", "citext"), TypeChange::Rewrite);
}

#[test]
fn not_null_is_proved_as_the_server_proves_it() {
    for (check, proved) in [
        ("a IS NOT NULL", true),
        ("a IS NOT NULL AND b IS NOT NULL", true),
        ("NOT (a IS NULL)", true),
        ("NOT (a IS NULL OR b > 1)", true),
        ("(a IS NOT NULL AND b = 1) OR (a IS NOT NULL AND b = 2)", true),
        ("a > 0", false),
        ("a > 0 OR a IS NOT NULL", false),
        ("num_nonnulls(a) = 1", false),
        ("b IS NOT NULL", false),
        ("a = a", false),
        ("a IS DISTINCT FROM NULL", true),
        ("coalesce(a, 0) > 0", false),
        ("a IS NOT NULL OR b IS NOT NULL", false),
        ("(a > 0) IS TRUE", false),
    ] {
        assert_eq!(check_implies_not_null(&expression(check), "a"), proved, "{check}");
    }
}

#[test]
fn implications_are_as_measured() {
    let fake = schema();
    let target = Target::new(PgVersion(17));
    let analyzer = Analyzer::new(&fake, &target);
    let mut wrong = String::new();
    for row in rows(include_str!("../../../../fixtures/types/implications.tsv")) {
        let [columns, check, required, proved] = row[..] else { panic!("{row:?}") };
        let (column, not_null) = columns.strip_suffix(" NOT NULL").map_or((columns, false), |column| (column, true));
        let (name, sql_type) = column.split_once(' ').expect("a column");
        let scope = scope(&analyzer, &[(name, sql_type), ("b", "int")]);
        let not_null = if not_null { vec![name] } else { Vec::new() };
        let told = analyzer.checks_imply(&scope, &[&expression(check)], &not_null, &expression(required));
        // A constant cast to another type than the column's is not followed: no proof, and so a scan that may not happen.
        let not_followed = ["::bigint", "::timestamp", "k::text"].iter().any(|cast| check.contains(cast));
        if told.to_string() != proved && (told || !not_followed) {
            let _ = writeln!(wrong, "{column}: {check} implies {required}: {proved}, not {told}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_proof_takes_bounded_time() {
    let fake = schema();
    let target = Target::new(PgVersion(17));
    let analyzer = Analyzer::new(&fake, &target);
    let scope = scope(&analyzer, &[("a", "int"), ("b", "int"), ("c", "int"), ("z", "int")]);
    let nested = |inner: &str, around: fn(&str) -> String| (0..40).fold(inner.to_owned(), |inner, _| around(&inner));
    let check = nested("c = 3", |inner| format!("b = 2 AND (a = 1 OR ({inner}))"));
    let required = nested("c = 4", |inner| format!("a = 1 OR (z IS NOT NULL AND ({inner}))"));
    let begun = std::time::Instant::now();
    assert!(!analyzer.checks_imply(&scope, &[&expression(&check)], &["z"], &expression(&required)));
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

#[test]
fn a_partition_bound_becomes_a_constraint() {
    use pgvet_syntax::ast::{PartitionBound, PartitionStrategy};
    let fake = schema();
    let target = Target::new(PgVersion(17));
    let analyzer = Analyzer::new(&fake, &target);
    let key =
        crate::catalog::PartitionKey { strategy: PartitionStrategy::Range, keys: Arc::new(vec![expression("k")]) };
    let scope = scope(&analyzer, &[("k", "int")]);
    let implied = |check: &str, bound: PartitionBound| {
        let required = super::partition_constraint(&key, &bound).expect("one key");
        analyzer.checks_imply(&scope, &[&expression(check)], &[], &required)
    };
    let range = |from: &str, to: &str| PartitionBound::Range { from: vec![expression(from)], to: vec![expression(to)] };
    assert!(implied("k is not null and k >= 1 and k < 10", range("1", "10")));
    assert!(!implied("k is not null and k >= 0 and k < 10", range("1", "10")));
    assert!(implied("k is not null and k < 10", range("minvalue", "10")));
    assert!(implied("k is null", PartitionBound::List(vec![expression("1"), expression("null")])));
    assert!(!implied("k = 1", PartitionBound::List(vec![expression("1")])));
}

#[test]
fn nested_calls_of_inlined_functions_take_linear_time() {
    let mut fake = schema();
    fake.add_function("twice", &[("x", "int")], "int", ("sql", Volatility::Volatile, "select x + x"));
    let target = Target::new(PgVersion(17));
    let call = format!("{}1{}", "twice(".repeat(20), ")".repeat(20));
    let typed = Analyzer::new(&fake, &target).infer(&expression(&call), &Scope::default());
    assert_eq!(typed.volatility, Volatility::Immutable);
    let mut deep = expression("1");
    for _ in 0..500 {
        deep = Expr { range: deep.range, kind: pgvet_syntax::ast::ExprKind::Not(Box::new(deep)) };
    }
    assert!(!Analyzer::new(&fake, &target).infer(&deep, &Scope::default()).unknown.is_empty());
    let typed = Analyzer::new(&fake, &target).infer(&expression("twice(random()::int)"), &Scope::default());
    assert_eq!(typed.volatility, Volatility::Volatile);
}
