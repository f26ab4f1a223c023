//! The value of a column as SQL, from the number of its row.

use super::check::Allowed;

/// A column that gets generated values.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    pub(super) number: i16,
    /// Quoted for SQL.
    pub(super) name: String,
    /// As in SQL: `character varying(20)`.
    pub(super) sql_type: String,
    /// The base type of a domain, else the type itself: `int4`.
    pub(super) base_type: String,
    /// `pg_type.typcategory` of the base type.
    pub(super) category: char,
    /// Of a text: the longest that its type allows; of a number: digits before the point.
    pub(super) size: Option<i64>,
    pub(super) enum_labels: i64,
    pub(super) not_null: bool,
    pub(super) has_default: bool,
    /// The sequence of a serial or identity column.
    pub(super) sequence: Option<String>,
    pub(super) unique: bool,
    pub(super) allowed: Allowed,
}

/// Bits that an integer type may use, as the count of values that stay distinct.
const SMALLINT_VALUES: i64 = 32_000;
const INTEGER_VALUES: i64 = 2_000_000_000;

impl Column {
    /// SQL for the value in row `g`; `None` where no value is known for the type.
    pub(super) fn value(&self) -> Option<String> {
        if !self.allowed.list.is_empty() {
            let values = self.allowed.list.join(", ");
            let value = format!("(ARRAY[{values}])[1 + (g % {})]", self.allowed.list.len());
            return Some(self.cast(&value));
        }
        let integer = |width: i64| self.allowed.integer("g", width);
        let value = match self.base_type.as_str() {
            "int2" => integer(SMALLINT_VALUES),
            "int4" | "oid" => integer(INTEGER_VALUES),
            "int8" | "float4" | "float8" | "money" => integer(i64::MAX),
            "numeric" => integer(self.numbers()),
            "bool" => "g % 2 = 0".to_owned(),
            "uuid" => "md5(g::text)".to_owned(),
            "date" => format!("date '2000-01-01' + (g % {})::int", if self.unique { 1_000_000_000 } else { 9000 }),
            "timestamp" | "timestamptz" => "timestamp '2000-01-01' + g * interval '1 second'".to_owned(),
            "time" | "timetz" => "time '00:00' + (g % 86400) * interval '1 second'".to_owned(),
            "interval" => "g * interval '1 second'".to_owned(),
            "json" | "jsonb" => "json_build_object('n', g)".to_owned(),
            "bytea" => "decode(md5(g::text), 'hex')".to_owned(),
            "inet" => "inet '10.0.0.0' + (g % 16777216)".to_owned(),
            "cidr" => "set_masklen(inet '10.0.0.0' + (g % 16777216), 32)".to_owned(),
            "macaddr" | "macaddr8" => "left(md5(g::text), 12)".to_owned(),
            "tsvector" => "to_tsvector('simple', g::text)".to_owned(),
            "xml" => "'<n>' || g || '</n>'".to_owned(),
            "bit" | "varbit" => return Some(format!("(g % 2)::int::{}", self.bit_type())),
            _ => match self.category {
                'S' => self.text(),
                'E' if self.enum_labels > 0 => {
                    return Some(format!("(enum_range(NULL::{}))[1 + (g % {})]", self.sql_type, self.enum_labels));
                }
                'A' => "'{}'".to_owned(),
                'R' => "'empty'".to_owned(),
                'G' => self.geometric(),
                // `citext`, `ltree` and `hstore` are of category U or S; their text form is what fits them.
                'U' if self.base_type == "hstore" => "'n=>' || g".to_owned(),
                'U' if matches!(self.base_type.as_str(), "citext" | "ltree") => self.text(),
                _ => return None,
            },
        };
        Some(self.cast(&value))
    }

    /// How many numbers have this many digits before the point.
    fn numbers(&self) -> i64 {
        let digits = u32::try_from(self.size.unwrap_or(18)).unwrap_or(0).min(18);
        (10_i64.pow(digits) - 1).max(1)
    }

    fn cast(&self, value: &str) -> String {
        format!("({value})::{}", self.sql_type)
    }

    /// `bit(3)` takes an integer from its length on.
    fn bit_type(&self) -> String {
        self.sql_type.replace("bit varying", "bit")
    }

    /// A word and the number of the row, as long as it may be; at the end of the text the number makes it unique.
    fn text(&self) -> String {
        let longest = self.size.into_iter().chain(self.allowed.longest).min();
        let word = self.name.trim_matches('"').replace('\'', "");
        let text = match longest {
            Some(longest) if longest < 24 => format!("right(g::text, {longest})"),
            Some(longest) => format!("right('{word}_' || g, {longest})"),
            None => format!("'{word}_' || g"),
        };
        match self.allowed.shortest {
            Some(shortest) if shortest > 1 => format!("lpad({text}, greatest({shortest}, length({text})), 'x')"),
            _ => text,
        }
    }

    fn geometric(&self) -> String {
        match self.base_type.as_str() {
            "point" => "point(g, g)".to_owned(),
            "box" => "box(point(g, g), point(g + 1, g + 1))".to_owned(),
            "circle" => "circle(point(g, g), 1)".to_owned(),
            "line" => "'{1,-1,0}'".to_owned(),
            "lseg" => "lseg(point(g, g), point(g + 1, g + 1))".to_owned(),
            _ => "'((0,0),(1,1))'".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(base_type: &str, category: char) -> Column {
        Column {
            name: "\"name\"".to_owned(),
            base_type: base_type.to_owned(),
            sql_type: base_type.to_owned(),
            category,
            ..Column::default()
        }
    }

    #[test]
    fn short_texts_are_numbers_and_long_ones_words() {
        let text = |size| Column { size, ..column("varchar", 'S') }.value();
        assert_eq!(text(Some(5)).as_deref(), Some("(right(g::text, 5))::varchar"));
        assert_eq!(text(None).as_deref(), Some("('name_' || g)::varchar"));
    }

    #[test]
    fn a_type_that_nobody_knows_has_no_value() {
        assert_eq!(column("geometry", 'U').value(), None);
    }
}
