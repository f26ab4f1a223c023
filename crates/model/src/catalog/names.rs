//! The names that PostgreSQL makes up for constraints, indexes and sequences.

use super::Catalog;
use smol_str::SmolStr;

/// PostgreSQL's NAMEDATALEN - 1.
const MAX_NAME_BYTES: usize = 63;

/// Joins `name1_name2_label`, shortening the two names in turn until the result fits.
///
/// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `makeObjectName`.
fn make_object_name(name1: &str, name2: Option<&str>, label: Option<&str>) -> String {
    let overhead = label.map_or(0, |label| label.len() + 1) + usize::from(name2.is_some());
    let available = MAX_NAME_BYTES.saturating_sub(overhead);
    let (mut length1, mut length2) = (name1.len(), name2.map_or(0, str::len));
    while length1 + length2 > available {
        if length1 > length2 { length1 -= 1 } else { length2 -= 1 }
    }
    let mut made = clip(name1, length1).to_owned();
    for part in [name2.map(|name2| clip(name2, length2)), label].into_iter().flatten() {
        made.push('_');
        made.push_str(part);
    }
    made
}

/// The longest prefix of at most `length` bytes that ends at a character.
fn clip(name: &str, mut length: usize) -> &str {
    while !name.is_char_boundary(length) {
        length -= 1;
    }
    &name[..length]
}

/// Puts a number after the label until the name is free.
fn first_free(
    name1: &str,
    name2: Option<&str>,
    label: &str,
    taken_up_to: impl Fn(&str) -> u32,
    is_taken: impl Fn(&str) -> bool,
) -> SmolStr {
    let numbered = |pass: u32| make_object_name(name1, name2, Some(&format!("{label}{pass}")));
    let base = make_object_name(name1, name2, Some(label));
    if !is_taken(&base) {
        return base.into();
    }
    // A long name is cut, the further the longer its number is.
    let known = taken_up_to(&base);
    let mut pass = if numbered(known) == format!("{base}{known}") { known + 1 } else { 1 };
    loop {
        let candidate = numbered(pass);
        if !is_taken(&candidate) {
            return candidate.into();
        }
        pass += 1;
    }
}

impl Catalog {
    /// PostgreSQL's `ChooseRelationName`: for indexes and sequences. `is_constraint`: the name must be free for a
    /// constraint, too.
    pub fn choose_relation_name(
        &self,
        name1: &str,
        name2: Option<&str>,
        label: &str,
        schema: &str,
        is_constraint: bool,
    ) -> SmolStr {
        let of_constraints =
            |base: &str| if is_constraint { self.constraint_names.taken_up_to(schema, base) } else { 0 };
        let taken_up_to = |base: &str| self.relation_names.taken_up_to(schema, base).max(of_constraints(base));
        first_free(name1, name2, label, taken_up_to, |candidate| {
            self.relation_named(schema, candidate).is_some()
                || (is_constraint && self.constraint_name_exists(schema, candidate))
        })
    }

    /// PostgreSQL's `ChooseConstraintName`; `others` are names that the same statement gives.
    pub fn choose_constraint_name(
        &self,
        name1: &str,
        name2: Option<&str>,
        label: &str,
        schema: &str,
        others: &[SmolStr],
    ) -> SmolStr {
        let taken_up_to = |base: &str| self.constraint_names.taken_up_to(schema, base);
        first_free(name1, name2, label, taken_up_to, |candidate| {
            self.constraint_name_exists(schema, candidate) || others.iter().any(|other| other == candidate)
        })
    }

    /// PostgreSQL's `ChooseExtendedStatisticName`.
    pub fn choose_statistics_name(&self, table: &str, columns: &[SmolStr], schema: &str) -> SmolStr {
        let addition = index_name_addition(columns);
        first_free(
            table,
            Some(&addition),
            "stat",
            |_| 0,
            |candidate| self.statistics_named(schema, candidate).is_some(),
        )
    }

    /// The name of an array type: the element's with an underscore before it, more of them until it is free.
    pub(super) fn free_array_type_name(&self, schema: &str, name: &str) -> SmolStr {
        let mut candidate = name.to_owned();
        loop {
            candidate.insert(0, '_');
            let cut = clip(&candidate, candidate.len().min(MAX_NAME_BYTES)).to_owned();
            if self.type_named(schema, &cut).is_none() {
                return cut.into();
            }
        }
    }
}

/// The part of an index's name that comes from its keys: names joined with `_`, up to 63 bytes.
///
/// Source: PostgreSQL 18, `src/backend/commands/indexcmds.c`, `ChooseIndexNameAddition`.
pub fn index_name_addition(columns: &[SmolStr]) -> SmolStr {
    let mut joined = String::new();
    for column in columns {
        if !joined.is_empty() {
            joined.push('_');
        }
        joined.push_str(column);
        if joined.len() > MAX_NAME_BYTES {
            break;
        }
    }
    clip(&joined, joined.len().min(MAX_NAME_BYTES)).into()
}

/// The same for a foreign key.
///
/// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `ChooseForeignKeyConstraintNameAddition`.
pub fn foreign_key_name_addition(columns: &[SmolStr]) -> SmolStr {
    index_name_addition(columns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_shortened_in_turn() {
        let (long, longer) = ("a".repeat(40), "b".repeat(50));
        let name = make_object_name(&long, Some(&longer), Some("fkey"));
        assert_eq!(name.len(), 63);
        assert_eq!(name, format!("{}_{}_fkey", "a".repeat(29), "b".repeat(28)));
    }

    #[test]
    fn characters_are_not_cut() {
        let name = make_object_name(&"ä".repeat(40), None, Some("idx"));
        assert!(name.len() <= 63 && name.ends_with("_idx"));
    }
}
