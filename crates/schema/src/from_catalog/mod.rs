//! The schema as the catalog of a replay has it.

mod code;
mod relation;
mod types;
mod view;

use crate::object::{
    Code, Composite, Domain, DomainCheck, Enum, Extension, Function, Known, Name, Privilege, Publication, Schema,
    Sequence, SequenceOptions, Source,
};
use pgvet_model::builtin::Volatility;
use pgvet_model::catalog::{self, Catalog, Oid, TEMPORARY_SCHEMA, TypeKind};
use pgvet_model::expression::Analyzer;
use pgvet_model::version::{PgVersion, Target};
use pgvet_syntax::ast::{FunctionBody, ParameterMode};
use pgvet_syntax::lexer::quote_identifier;
use smol_str::SmolStr;
pub(crate) use types::Types;

/// Reads the catalog of a version. The order of everything is by name, but for columns and labels, which have one of their own.
pub fn read(catalog: &Catalog, version: PgVersion) -> Schema {
    let target = Target::new(version);
    let types = Types(catalog);
    let reader = Reader { catalog, analyzer: Analyzer::new(&types, &target) };
    let mut schema = Schema {
        source: Source::Files,
        pg_version: version.0,
        schemas: catalog.schemas().filter(|name| *name != TEMPORARY_SCHEMA).map(SmolStr::to_string).collect(),
        extensions: reader.extensions(),
        sequences: reader.sequences(),
        relations: reader.relations(),
        functions: reader.functions(),
        publications: reader.publications(),
        extension_relations: reader.extension_relations(),
        gaps: gaps(catalog),
        ..Schema::default()
    };
    reader.types(&mut schema);
    schema
}

/// What is said once about all extensions that are not part of PostgreSQL.
const EXTENSION_NOT_KNOWN: &str = "the objects that it creates are not known, so they are not compared";

/// What the model does not keep about these objects.
fn gaps(catalog: &Catalog) -> Vec<String> {
    let mut gaps = Vec::new();
    if catalog.doubts_everything() {
        gaps.push("a statement ran whose text is known only at run time, so any object may differ".to_owned());
    } else if catalog.has_doubts() {
        gaps.push("a statement ran whose text is known only at run time, so some objects may differ".to_owned());
    }
    let open = catalog.open_relations().count();
    if open > 0 {
        gaps.push(format!("statements create relations whose names are known only at run time, in {open} places"));
    }
    let extensions: Vec<&str> = catalog.unknown_extensions().map(|(name, _)| name.as_str()).collect();
    if !extensions.is_empty() {
        gaps.push(format!("extension {}: {EXTENSION_NOT_KNOWN}", extensions.join(", ")));
    } else if catalog.has_unseen() {
        gaps.push("statements use objects that no statement creates".to_owned());
    }
    if catalog.publications().any(|publication| !publication.tables.is_empty()) {
        gaps.push("column lists and row filters of publications are not read".to_owned());
    }
    if catalog.has_more_code() {
        gaps.push("aggregates, operators and casts are not read".to_owned());
    }
    gaps
}

struct Reader<'a> {
    catalog: &'a Catalog,
    analyzer: Analyzer<'a>,
}

fn counting(sequence: &catalog::Sequence) -> SequenceOptions {
    let counting = sequence.counting.complete(sequence.sql_type);
    SequenceOptions {
        start: counting.start.unwrap_or(1),
        increment: counting.increment.unwrap_or(1),
        minimum: counting.minimum.unwrap_or(1),
        maximum: counting.maximum.unwrap_or(i64::MAX),
        cache: counting.cache.unwrap_or(1),
        cycle: counting.cycle,
    }
}

fn strings(names: &[SmolStr]) -> Vec<String> {
    names.iter().map(SmolStr::to_string).collect()
}

fn name(schema: &str, name: &str) -> Name {
    Name { schema: schema.to_owned(), name: name.to_owned() }
}

impl Reader<'_> {
    fn name_of(&self, oid: Oid) -> Option<Name> {
        self.catalog.get_relation(oid).map(|relation| name(&relation.schema, &relation.name))
    }

    fn sql_type(&self, sql_type: catalog::SqlType) -> Known<String> {
        let text = self.analyzer.known_type(sql_type);
        text.map_or_else(|| Known::unknown("a type that is not known"), Known::Value)
    }

    /// The type of a parameter or a result. PostgreSQL does not keep the length of `varchar(20)` there.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/functioncmds.c`, `interpret_function_parameter_list` and
    /// `compute_return_type`.
    fn routine_type(&self, sql_type: catalog::SqlType) -> Known<String> {
        self.sql_type(without_modifier(sql_type))
    }

    fn extensions(&self) -> Vec<Extension> {
        let extension = |(name, schema): (&SmolStr, &SmolStr)| Extension {
            name: name.to_string(),
            schema: schema.to_string(),
            assumed_schema: !self.catalog.is_extension_schema_certain(name),
        };
        self.catalog.extensions().map(extension).collect()
    }

    fn is_of_extension(&self, type_name: &str) -> bool {
        let mut types = self.catalog.known_extensions().iter().flat_map(|extension| extension.types);
        types.any(|provided| provided.name == type_name)
    }

    fn extension_relations(&self) -> Vec<Name> {
        let known = self.catalog.known_extensions().iter();
        let own = known.filter_map(|extension| Some((self.catalog.extension(extension.name)?, extension.relations)));
        let mut names: Vec<Name> =
            own.flat_map(|(schema, relations)| relations.iter().map(|relation| name(schema, relation))).collect();
        names.sort();
        names
    }

    fn privileges(&self, object: Oid, skip: impl Fn(&catalog::Privilege) -> bool) -> Vec<Privilege> {
        let given = self.catalog.privileges(object).filter(|privilege| !skip(privilege));
        let mut privileges: Vec<Privilege> = given
            .map(|given| Privilege {
                grantee: given.grantee.to_string(),
                privilege: given.privilege.to_uppercase(),
                column: given.column.as_ref().map(SmolStr::to_string),
            })
            .collect();
        privileges.sort();
        privileges.dedup();
        privileges
    }

    fn sequences(&self) -> Vec<Sequence> {
        let all = self.catalog.relations().filter(|relation| relation.schema != TEMPORARY_SCHEMA);
        let own = all.filter_map(|relation| Some((relation, relation.sequence()?)));
        let mut sequences: Vec<Sequence> = own
            .filter(|(_, sequence)| !sequence.identity)
            .map(|(relation, sequence)| Sequence {
                name: name(&relation.schema, &relation.name),
                sql_type: self.analyzer.format_type(sequence.sql_type),
                options: Known::Value(counting(sequence)),
                owned_by: sequence
                    .owned_by
                    .as_ref()
                    .and_then(|(table, column)| Some((self.name_of(*table)?, column.to_string()))),
                privileges: self.privileges(relation.oid, |_| false),
            })
            .collect();
        sequences.sort_by(|one, other| one.name.cmp(&other.name));
        sequences
    }

    fn types(&self, schema: &mut Schema) {
        let own = self.catalog.types().filter(|definition| definition.schema != TEMPORARY_SCHEMA);
        for definition in own {
            let name = name(&definition.schema, &definition.name);
            match &definition.kind {
                TypeKind::Enum { labels } => {
                    let labels = labels.iter().map(|label| label.label.to_string()).collect();
                    schema.enums.push(Enum { name, labels });
                }
                TypeKind::Domain(domain) => schema.domains.push(self.domain(name, domain)),
                TypeKind::Composite { relation } => {
                    let relation = self.catalog.get_relation(*relation);
                    let alone = relation.filter(|one| one.kind == catalog::RelationKind::CompositeType);
                    if let Some(relation) = alone {
                        schema.composites.push(Composite { name, columns: self.columns(relation) });
                    }
                }
                TypeKind::Base if self.is_of_extension(&definition.name) => {}
                TypeKind::Range { .. } | TypeKind::Base => {
                    schema.gaps.push(format!("type {}.{}: ranges and base types are not read", name.schema, name.name));
                }
                // An extension may create it, which is said once for all of them.
                TypeKind::Assumed if self.catalog.unknown_extensions().next().is_some() => {}
                TypeKind::Assumed => {
                    schema
                        .gaps
                        .push(format!("type {}.{}: no statement that was read creates it", name.schema, name.name));
                }
                TypeKind::Multirange { .. } | TypeKind::Array { .. } | TypeKind::Shell => {}
            }
        }
        schema.enums.sort_by(|one, other| one.name.cmp(&other.name));
        schema.domains.sort_by(|one, other| one.name.cmp(&other.name));
        schema.composites.sort_by(|one, other| one.name.cmp(&other.name));
        schema.gaps.sort();
    }

    fn domain(&self, name: Name, domain: &catalog::Domain) -> Domain {
        let check = |check: &catalog::DomainCheck| DomainCheck {
            name: check.name.to_string(),
            expression: code::expression(&check.expression),
            valid: check.valid,
        };
        let mut checks: Vec<DomainCheck> = domain.checks.iter().map(|one| check(one)).collect();
        checks.sort_by(|one, other| one.name.cmp(&other.name));
        Domain {
            name,
            base: self.sql_type(domain.base),
            not_null: domain.not_null,
            default: domain.default.as_deref().map(code::expression),
            checks,
        }
    }

    fn functions(&self) -> Vec<Function> {
        let own = self.catalog.functions().filter(|function| function.schema != TEMPORARY_SCHEMA);
        let mut functions: Vec<Function> = own.map(|function| self.function(function)).collect();
        functions.sort_by(|one, other| (&one.name, &one.inputs).cmp(&(&other.name, &other.inputs)));
        functions
    }

    fn function(&self, function: &catalog::Function) -> Function {
        let kind = match (function.aggregate, function.procedure) {
            (true, _) => "aggregate",
            (_, true) => "procedure",
            _ => "function",
        };
        let mut settings: Vec<String> =
            function.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        settings.sort();
        Function {
            name: name(&function.schema, &function.name),
            inputs: function.input_types().map(|one| self.analyzer.format_type(without_modifier(one))).collect(),
            kind: kind.to_owned(),
            parameters: self.parameters(function),
            returns: self.returned(function),
            language: function.language.to_string(),
            volatility: match function.volatility {
                Volatility::Immutable => "immutable",
                Volatility::Stable => "stable",
                Volatility::Volatile => "volatile",
            }
            .to_owned(),
            strict: function.strict,
            security_definer: function.security_definer,
            settings,
            body: match &*function.body {
                FunctionBody::Source { text, .. } => Known::Value(text.to_string()),
                FunctionBody::Atomic { .. } => Known::unknown("BEGIN ATOMIC and RETURN bodies"),
                FunctionBody::Library | FunctionBody::Missing => Known::unknown("functions of libraries"),
            },
            privileges: self.privileges(function.oid, |given| given.grantee == "public"),
        }
    }

    fn returned(&self, function: &catalog::Function) -> Known<String> {
        if function.procedure {
            return Known::default();
        }
        let mut columns = Vec::new();
        for one in function.parameters.iter().filter(|one| one.mode == ParameterMode::Table) {
            let name = one.name.as_deref().map(quote_identifier).unwrap_or_default();
            match self.routine_type(one.sql_type) {
                Known::Value(sql_type) => columns.push(format!("{name} {sql_type}")),
                unknown @ Known::Unknown { .. } => return unknown,
            }
        }
        if !columns.is_empty() {
            return Known::Value(format!("TABLE({})", columns.join(", ")));
        }
        match self.routine_type(function.returns) {
            Known::Value(returned) if function.returns_set => Known::Value(format!("SETOF {returned}")),
            returned => returned,
        }
    }

    /// As `pg_get_function_arguments` writes them.
    fn parameters(&self, function: &catalog::Function) -> Code {
        let mut written = Vec::new();
        for one in function.parameters.iter().filter(|one| one.mode != ParameterMode::Table) {
            let mode = match one.mode {
                ParameterMode::In | ParameterMode::Table => "",
                ParameterMode::Out => "OUT ",
                ParameterMode::InOut => "INOUT ",
                ParameterMode::Variadic => "VARIADIC ",
            };
            let name = one.name.as_deref().map_or_else(String::new, |name| format!("{} ", quote_identifier(name)));
            let default = match (&one.default, one.has_default) {
                (None, false) => String::new(),
                (None, true) => return Known::unknown("the default of a parameter"),
                (Some(default), _) => match code::expression(default) {
                    Known::Value(text) => format!(" DEFAULT {text}"),
                    unknown @ Known::Unknown { .. } => return unknown,
                },
            };
            match self.routine_type(one.sql_type) {
                Known::Value(sql_type) => written.push(format!("{mode}{name}{sql_type}{default}")),
                unknown @ Known::Unknown { .. } => return unknown,
            }
        }
        Known::Value(written.join(", "))
    }

    fn publications(&self) -> Vec<Publication> {
        let read = |publication: &catalog::Publication| {
            let mut tables: Vec<Name> = publication.tables.keys().filter_map(|oid| self.name_of(*oid)).collect();
            tables.sort();
            let mut schemas = strings(&publication.schemas);
            schemas.sort();
            Publication {
                name: publication.name.to_string(),
                all_tables: publication.all_tables,
                schemas,
                tables,
                updates: publication.updates,
                deletes: publication.deletes,
            }
        };
        self.catalog.publications().map(|publication| read(publication)).collect()
    }
}

fn without_modifier(sql_type: catalog::SqlType) -> catalog::SqlType {
    catalog::SqlType { typmod: -1, ..sql_type }
}
