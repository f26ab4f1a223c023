//! The values that a CHECK of simple form allows, read from PostgreSQL's own text of it.

/// The allowed values of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Allowed {
    /// SQL of the values of an IN list.
    pub(super) list: Vec<String>,
    pub(super) least: Option<i64>,
    pub(super) greatest: Option<i64>,
    /// Of a text.
    pub(super) shortest: Option<i64>,
    pub(super) longest: Option<i64>,
}

impl Allowed {
    /// Adds what `pg_get_constraintdef` says of a constraint on one column.
    ///
    /// Forms: `CHECK ((a = ANY (ARRAY['x'::text, 'y'::text])))`, `CHECK (((a >= 1) AND (a <= 5)))`,
    /// `CHECK ((char_length(a) <= 10))`.
    pub(super) fn add(&mut self, definition: &str) {
        if let Some(list) = list(definition) {
            self.list = list;
            return;
        }
        if definition.contains(" OR ") {
            return;
        }
        for term in definition.split(" AND ") {
            let Some((operator, number)) = comparison(term) else { continue };
            let is_length = term.contains("length(");
            let (least, greatest) =
                if is_length { (&mut self.shortest, &mut self.longest) } else { (&mut self.least, &mut self.greatest) };
            match operator {
                ">=" => *least = Some(number),
                ">" => *least = Some(number + 1),
                "<=" => *greatest = Some(number),
                "<" => *greatest = Some(number - 1),
                _ => {}
            }
        }
    }

    /// SQL for an integer that follows the bounds, from the number of the row.
    pub(super) fn integer(&self, number: &str, width: i64) -> String {
        let least = self.least.unwrap_or_else(|| self.greatest.map_or(1, |greatest| greatest.min(1)));
        let greatest = self.greatest.unwrap_or_else(|| least.saturating_add(width - 1));
        let count = greatest.saturating_sub(least).saturating_add(1).max(1);
        format!("{least} + ({number} - 1) % {count}")
    }
}

/// The values in `= ANY (ARRAY[...])`.
fn list(definition: &str) -> Option<Vec<String>> {
    let (_, rest) = definition.split_once("= ANY (")?;
    let (_, rest) = rest.split_once("ARRAY[")?;
    let mut values = Vec::new();
    let (mut start, mut quoted) = (0, false);
    for (at, character) in rest.char_indices() {
        match character {
            '\'' => quoted = !quoted,
            ',' | ']' if !quoted => {
                values.push(rest[start..at].trim().to_owned());
                start = at + 1;
                if character == ']' {
                    return Some(values);
                }
            }
            _ => {}
        }
    }
    None
}

/// `(a >= 1)`: the operator and the number.
fn comparison(term: &str) -> Option<(&str, i64)> {
    let start = term.find(['<', '>'])?;
    let operator = if term[start + 1..].starts_with('=') { &term[start..start + 2] } else { &term[start..=start] };
    let rest = term[start + operator.len()..].trim_start_matches([' ', '(', '\'']);
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '-')).unwrap_or(rest.len());
    Some((operator, rest[..end].parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(definition: &str) -> Allowed {
        let mut allowed = Allowed::default();
        allowed.add(definition);
        allowed
    }

    #[test]
    fn lists_keep_their_values_as_sql() {
        let list = allowed("CHECK ((s = ANY (ARRAY['a,b'::text, 'it''s'::text])))").list;
        assert_eq!(list, ["'a,b'::text", "'it''s'::text"]);
        let list = allowed("CHECK (((s)::text = ANY ((ARRAY['a'::character varying])::text[])))").list;
        assert_eq!(list, ["'a'::character varying"]);
    }

    #[test]
    fn bounds_are_read_from_both_sides_and_of_lengths() {
        let bounds = allowed("CHECK (((rating >= 1) AND (rating < 6)))");
        assert_eq!((bounds.least, bounds.greatest), (Some(1), Some(5)));
        assert_eq!(bounds.integer("g", 1000), "1 + (g - 1) % 5");
        assert_eq!(allowed("CHECK ((char_length(name) <= 10))").longest, Some(10));
        assert_eq!(allowed("CHECK ((price > (0)::numeric))").least, Some(1));
        assert_eq!(allowed("CHECK ((balance <= '-5'::integer))").integer("g", 10), "-5 + (g - 1) % 1");
    }

    #[test]
    fn alternatives_and_functions_are_left_alone() {
        for definition in ["CHECK (((a > 1) OR (b < 2)))", "CHECK (is_valid(a))", "CHECK ((a > b))"] {
            assert_eq!(allowed(definition), Allowed::default(), "{definition}");
        }
    }
}
