//! A schema as SQL that makes it, in stable order, each object after those that it needs.

mod alteration;
mod casts;
mod drop;
mod order;
mod parts;
mod table;

pub use alteration::{alteration, difference};

use crate::object::{
    Composite, Domain, Enum, Extension, Function, Known, Name, Privilege, Publication, Relation, RelationKind, Schema,
    Sequence,
};
use crate::words;
use pgvet_syntax::deparse::string;
use pgvet_syntax::lexer::quote_identifier;

/// SQL that makes a schema in an empty database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    pub text: String,
    /// What could not be written, in words.
    pub omitted: Vec<String>,
}

/// Writes a schema as SQL.
pub fn script(schema: &Schema) -> Script {
    let mut writer = Writer { schema, text: String::new(), omitted: Vec::new() };
    writer.write();
    Script { text: writer.text, omitted: writer.omitted }.with_comments()
}

impl Script {
    /// Says in comments what is omitted.
    fn with_comments(mut self) -> Self {
        self.omitted.sort();
        self.text.extend(self.omitted.iter().map(|omitted| comment("omitted", omitted)));
        self
    }
}

fn comment(what: &str, text: &str) -> String {
    format!("-- {what}: {}\n", text.replace(['\n', '\r'], " "))
}

struct Writer<'a> {
    schema: &'a Schema,
    text: String,
    omitted: Vec<String>,
}

fn quoted(name: &Name) -> String {
    let own = quote_identifier(&name.name);
    if name.schema.is_empty() { own } else { format!("{}.{own}", quote_identifier(&name.schema)) }
}

/// Why an object is omitted that needs a view which is.
fn reads_missing(view: &Name) -> String {
    format!("it needs the view {view}, which is omitted")
}

/// When a constraint or a constraint trigger is checked.
fn deferral(deferrable: bool, initially_deferred: bool) -> &'static str {
    match (deferrable, initially_deferred) {
        (_, true) => " DEFERRABLE INITIALLY DEFERRED",
        (true, false) => " DEFERRABLE",
        (false, false) => "",
    }
}

fn quoted_list(names: &[String]) -> String {
    names.iter().map(|name| quote_identifier(name)).collect::<Vec<String>>().join(", ")
}

impl Writer<'_> {
    fn write(&mut self) {
        let others = self.schema.schemas.iter().filter(|name| *name != "public");
        others.for_each(|name| self.statement(&format!("CREATE SCHEMA {}", quote_identifier(name))));
        if !self.schema.schemas.iter().any(|name| name == "public") {
            self.statement("DROP SCHEMA public");
        }
        self.settings(&self.schema.schemas);
        self.objects();
        self.omitted.extend(self.schema.gaps.iter().cloned());
    }

    /// The objects in the schemas.
    fn objects(&mut self) {
        let schema = self.schema;
        schema.extensions.iter().for_each(|extension| self.extension(extension));
        schema.enums.iter().for_each(|own| self.enumeration(own));
        order::types(&schema.domains, &schema.composites).into_iter().for_each(|one| match one {
            order::OwnType::Domain(domain) => self.domain(domain),
            order::OwnType::Composite(composite) => self.composite(composite),
        });
        schema.sequences.iter().for_each(|sequence| self.sequence(sequence));
        let (late, early): (Vec<&Function>, Vec<&Function>) =
            schema.functions.iter().partition(|function| order::names_relation(function, &schema.relations));
        early.into_iter().for_each(|function| self.function(function));
        schema.domains.iter().for_each(|domain| self.domain_code(domain));
        let tables = order::tables(&schema.relations);
        tables.iter().for_each(|table| self.table(table));
        tables.iter().for_each(|table| self.attach(table));
        schema.sequences.iter().for_each(|sequence| self.sequence_owner(sequence));
        // The keys of a partition come first, so that those of its parent find them.
        tables.iter().rev().for_each(|table| self.keys(table));
        tables.iter().rev().for_each(|table| self.indexes(table));
        tables.iter().for_each(|table| self.foreign_keys(table));
        let missing = order::missing_views(&schema.relations);
        order::views(&schema.relations).into_iter().for_each(|view| match missing.get(&view.name) {
            Some(Some(read)) => self.omit("view", &view.name.to_string(), &reads_missing(read)),
            _ => self.view(view),
        });
        late.into_iter().for_each(|function| match missing.keys().find(|view| order::has_rows_of(function, view)) {
            Some(view) => self.omit(&function.kind, &function.name.to_string(), &reads_missing(view)),
            None => self.function(function),
        });
        for relation in schema.relations.iter().filter(|relation| !missing.contains_key(&relation.name)) {
            self.hangs_on(relation);
        }
        schema.publications.iter().for_each(|publication| self.publication(publication));
    }

    fn statement(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push_str(";\n");
    }

    /// The value, unless it is not known: then its object is omitted.
    fn known<'v, T>(&mut self, value: &'v Known<T>, kind: &str, name: &str) -> Option<&'v T> {
        match value {
            Known::Value(value) => Some(value),
            Known::Unknown { not_known } => {
                self.omit(kind, name, not_known);
                None
            }
        }
    }

    fn omit(&mut self, kind: &str, name: &str, why: &str) {
        self.omitted.push(format!("{kind} {name}: {why}"));
    }

    /// The settings under which the statements mean what they say.
    fn settings(&mut self, schemas: &[String]) {
        self.statement("SET check_function_bodies = off");
        // Expressions have the names that migrations wrote.
        let others = schemas.iter().filter(|name| *name != "public").map(|name| quote_identifier(name));
        let path: Vec<String> = std::iter::once("public".to_owned()).chain(others).collect();
        self.statement(&format!("SET search_path = {}", path.join(", ")));
    }

    fn extension(&mut self, extension: &Extension) {
        let (name, schema) = (quote_identifier(&extension.name), quote_identifier(&extension.schema));
        let schema = if extension.assumed_schema { String::new() } else { format!(" SCHEMA {schema}") };
        self.statement(&format!("CREATE EXTENSION IF NOT EXISTS {name}{schema}"));
    }

    fn enumeration(&mut self, own: &Enum) {
        let labels: Vec<String> = own.labels.iter().map(|label| string(label)).collect();
        self.statement(&format!("CREATE TYPE {} AS ENUM ({})", quoted(&own.name), labels.join(", ")));
    }

    fn domain(&mut self, domain: &Domain) {
        let Some(base) = self.known(&domain.base, "domain", &domain.name.to_string()) else { return };
        let not_null = if domain.not_null { " NOT NULL" } else { "" };
        self.statement(&format!("CREATE DOMAIN {} AS {base}{not_null}", quoted(&domain.name)));
    }

    /// The default and the checks, which may call functions.
    fn domain_code(&mut self, domain: &Domain) {
        if domain.base.value().is_none() {
            return;
        }
        let (own, full) = (quoted(&domain.name), domain.name.to_string());
        if let Some(default) = domain.default.as_ref().and_then(|code| self.known(code, "default of domain", &full)) {
            self.statement(&format!("ALTER DOMAIN {own} SET DEFAULT {default}"));
        }
        for check in &domain.checks {
            let name = format!("{full}.{}", check.name);
            let Some(expression) = self.known(&check.expression, "constraint", &name) else { continue };
            let (name, valid) = (quote_identifier(&check.name), if check.valid { "" } else { " NOT VALID" });
            self.statement(&format!("ALTER DOMAIN {own} ADD CONSTRAINT {name} CHECK ({expression}){valid}"));
        }
    }

    fn composite(&mut self, composite: &Composite) {
        let mut columns = Vec::new();
        for column in &composite.columns {
            let known = self.known(&column.sql_type, "composite type", &composite.name.to_string());
            let Some(sql_type) = known else { return };
            columns.push(format!("{} {sql_type}", quote_identifier(&column.name)));
        }
        self.statement(&format!("CREATE TYPE {} AS ({})", quoted(&composite.name), columns.join(", ")));
    }

    fn sequence(&mut self, sequence: &Sequence) {
        let name = quoted(&sequence.name);
        let options = self.known(&sequence.options, "options of sequence", &sequence.name.to_string());
        let options = options.map_or_else(String::new, |options| format!(" {}", words::sequence(options)));
        self.statement(&format!("CREATE SEQUENCE {name} AS {}{options}", sequence.sql_type));
        self.privileges("SEQUENCE", &name, &sequence.privileges);
    }

    fn sequence_owner(&mut self, sequence: &Sequence) {
        if let Some((table, column)) = &sequence.owned_by {
            let (name, table, column) = (quoted(&sequence.name), quoted(table), quote_identifier(column));
            self.statement(&format!("ALTER SEQUENCE {name} OWNED BY {table}.{column}"));
        }
    }

    fn function(&mut self, function: &Function) {
        let name = function.name.to_string();
        let Some(returns) = self.known(&function.returns, &function.kind, &name) else { return };
        let Some(parameters) = self.known(&function.parameters, &function.kind, &name) else { return };
        let Some(body) = self.known(&function.body, &function.kind, &name) else { return };
        let is_procedure = function.kind == "procedure";
        let word = if is_procedure { "PROCEDURE" } else { "FUNCTION" };
        let mut text = format!("CREATE {word} {}({parameters})", quoted(&function.name));
        if !is_procedure {
            text = format!("{text} RETURNS {returns}");
        }
        text = format!("{text} LANGUAGE {}", quote_identifier(&function.language));
        if !is_procedure {
            text = format!("{text} {}", function.volatility.to_uppercase());
        }
        if function.strict {
            text.push_str(" STRICT");
        }
        if function.security_definer {
            text.push_str(" SECURITY DEFINER");
        }
        for setting in &function.settings {
            if let Some((name, value)) = setting.split_once('=') {
                // A list of names is written as such, as pg_dump does.
                let is_list = name == "search_path" && !matches!(value, "" | "\"\"");
                let value = if is_list { value.to_owned() } else { string(value.trim_matches('"')) };
                text = format!("{text} SET {name} = {value}");
            }
        }
        self.statement(&format!("{text} AS {}", dollar_quoted(body)));
        let signature = format!("{}({})", quoted(&function.name), function.inputs.join(", "));
        self.privileges(word, &signature, &function.privileges);
    }

    fn privileges(&mut self, kind: &str, name: &str, privileges: &[Privilege]) {
        for Privilege { grantee, privilege, column } in privileges {
            let column = column.as_ref().map_or_else(String::new, |column| format!(" ({})", quote_identifier(column)));
            let grantee = if grantee == "public" { "PUBLIC".to_owned() } else { quote_identifier(grantee) };
            self.statement(&format!("GRANT {privilege}{column} ON {kind} {name} TO {grantee}"));
        }
    }

    fn publication(&mut self, publication: &Publication) {
        let mut text = format!("CREATE PUBLICATION {}", quote_identifier(&publication.name));
        let tables: Vec<String> = publication.tables.iter().map(quoted).collect();
        let mut objects = Vec::new();
        if publication.all_tables {
            text.push_str(" FOR ALL TABLES");
        }
        if !tables.is_empty() {
            objects.push(format!("TABLE {}", tables.join(", ")));
        }
        if !publication.schemas.is_empty() {
            objects.push(format!("TABLES IN SCHEMA {}", quoted_list(&publication.schemas)));
        }
        if !objects.is_empty() {
            text = format!("{text} FOR {}", objects.join(", "));
        }
        if !(publication.updates && publication.deletes) {
            let words = [(true, "insert"), (publication.updates, "update"), (publication.deletes, "delete")];
            let words: Vec<&str> = words.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect();
            text = format!("{text} WITH (publish = '{}')", words.join(", "));
        }
        self.statement(&text);
    }
}

/// A text between dollars that it does not hold.
fn dollar_quoted(text: &str) -> String {
    let mut tag = String::from("$$");
    let mut number = 0;
    while text.contains(&tag) || text.ends_with('$') && number == 0 {
        number += 1;
        tag = format!("$body{number}$");
    }
    format!("{tag}{text}{tag}")
}

fn is_table(relation: &Relation) -> bool {
    matches!(relation.kind, RelationKind::Table | RelationKind::PartitionedTable)
}

#[cfg(test)]
mod tests;
