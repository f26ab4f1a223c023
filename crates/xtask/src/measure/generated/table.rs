//! Definitions of new tables, bounds of partitions, and rows.

use super::scene::Scene;
use super::template::{Fill, expand};
use super::types::{self, Family};
use pgvet_model::builtin;
use pgvet_syntax::ast::PartitionStrategy;
use pgvet_syntax::lexer::quote_identifier;

const COLUMNS: &[&str] =
    &["id", "a", "b", "c", "d", "\"Name\"", "price", "created_at", "e_long_column_name_of_forty_bytes_and_some_more"];

impl Scene<'_> {
    /// The columns and constraints of a new table.
    pub(super) fn definition(&mut self) -> String {
        let mut items = Vec::new();
        if self.random.percent(60) {
            let key = "id [int|bigint|bigint|serial|bigserial|int GENERATED [ALWAYS|BY DEFAULT] AS IDENTITY]\
                       [ PRIMARY KEY| PRIMARY KEY|| UNIQUE| CONSTRAINT {new_name} PRIMARY KEY]";
            items.extend(expand(key, self));
        }
        let mut names: Vec<&str> = COLUMNS[1..].iter().copied().filter(|_| self.random.percent(50)).collect();
        if names.is_empty() {
            names.push("a");
        }
        let mut earlier = Vec::new();
        for name in &names {
            items.extend(self.new_column(name, &earlier));
            earlier.push((*name, self.family));
        }
        for _ in 0..self.random.below(3) {
            let column = names[self.random.below(names.len())];
            let constraint = match self.random.below(4) {
                0 => format!("[|CONSTRAINT {{new_name}} ]CHECK ({column} IS NOT NULL)"),
                1 => format!("[|CONSTRAINT {{new_name}} ]UNIQUE ({column})[| DEFERRABLE| INCLUDE ({})]", names[0]),
                2 => format!("CHECK ({column} IS NOT NULL OR {} IS NULL)", names[0]),
                _ => format!("EXCLUDE ({column} WITH =)"),
            };
            items.extend(expand(&constraint, self));
        }
        items.join(", ")
    }

    /// A column, which may be computed from earlier ones.
    fn new_column(&mut self, name: &str, earlier: &[(&str, Family)]) -> Option<String> {
        let computed = self.random.percent(8);
        if let Some((column, family)) = self.random.one_of(earlier).filter(|_| computed) {
            let expression = types::expression(self.random, *family, column);
            self.family = Family::Text;
            return Some(format!("{name} text GENERATED ALWAYS AS ({expression}::text) STORED"));
        }
        let sql = self.slot("type")?;
        let rest = match self.random.below(11) {
            0..=4 => String::new(),
            5 | 6 => " DEFAULT {value}".to_owned(),
            7 => " NOT NULL DEFAULT {changing}".to_owned(),
            8 => "[ NOT NULL| NULL| UNIQUE| CONSTRAINT {new_name} NOT NULL]".to_owned(),
            9 => format!(" CHECK ({})", types::condition(self.random, self.family, name)),
            _ if self.family == Family::Text => "[ COLLATE \"C\"| DEFAULT NULL]".to_owned(),
            _ => "[ DEFAULT NULL| UNIQUE NOT NULL]".to_owned(),
        };
        Some(format!("{name} {sql}{}", expand(&rest, self)?))
    }

    /// The clause after the name of a new partitioned table.
    pub(super) fn partitioning(&mut self) -> String {
        let strategy = ["RANGE", "LIST", "HASH"][self.random.below(3)];
        let key_type = ["int", "bigint", "text", "date", "timestamptz"][self.random.below(5)];
        let constraint = ["", " NOT NULL", " PRIMARY KEY", ", UNIQUE (k)", ", UNIQUE (k, a)", ", PRIMARY KEY (k, a)"];
        let constraint = constraint[self.random.below(constraint.len())];
        let column = self.new_column("b", &[]).unwrap_or_else(|| "b int".to_owned());
        format!("(k {key_type}{constraint}, a int, {column}) PARTITION BY {strategy} (k)")
    }

    /// `FOR VALUES ...` for the partitioned table that is the subject.
    pub(super) fn bound(&mut self) -> Option<String> {
        let table = self.subject()?;
        let key = table.partition_by.as_ref()?;
        if key.strategy == PartitionStrategy::Hash {
            return Some(format!("FOR VALUES WITH (MODULUS 3, REMAINDER {})", self.random.below(3)));
        }
        if self.random.percent(20) {
            return Some("DEFAULT".to_owned());
        }
        let column = table.column(key.keys.first()?.as_column()?)?;
        let family = types::family(self.catalog, column.sql_type);
        let at = self.random.below(6);
        let value = |at: usize| match family {
            Family::Integer => (at * 10).to_string(),
            Family::Date | Family::Time => format!("'2024-0{}-01'", at + 1),
            _ => format!("'{}'", char::from(b'a' + at as u8)),
        };
        if key.strategy == PartitionStrategy::List {
            return Some(format!("FOR VALUES IN ({})", value(at)));
        }
        let from = if at == 0 { "MINVALUE".to_owned() } else { value(at) };
        Some(format!("FOR VALUES FROM ({from}) TO ({})", value(at + 1)))
    }

    /// `(columns) VALUES (values)` for the subject.
    pub(super) fn row(&mut self) -> Option<String> {
        let table = self.subject()?;
        let columns = table.columns.iter().filter(|column| column.generated.is_none() && column.identity.is_none());
        let columns: Vec<_> = columns.collect();
        let number = self.random.below(500);
        let value = |at: &&&pgvet_model::catalog::Column| {
            let name = builtin::type_by_oid(at.sql_type.oid.0).map_or("", |known| known.name);
            match (name, types::family(self.catalog, at.sql_type)) {
                ("bpchar" | "varchar" | "char", _) => "'v'".to_owned(),
                ("numeric", _) => "1".to_owned(),
                (_, family) => types::constant(family, number),
            }
        };
        let values: Vec<String> = columns.iter().map(|column| value(&column)).collect();
        let names: Vec<String> = columns.iter().map(|column| quote_identifier(&column.name)).collect();
        if names.is_empty() {
            return Some("DEFAULT VALUES".to_owned());
        }
        Some(format!("({}) VALUES ({})", names.join(", "), values.join(", ")))
    }
}
