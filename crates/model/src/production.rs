//! Configuration and statistics of tables and functions of production: sizes, traffic and calls.

use rustc_hash::FxHashMap;

/// Settings of objects, by `schema.name`, or `name` for any schema.
pub type ByName<T> = FxHashMap<String, T>;

/// Settings of functions.
pub type Functions = ByName<FunctionSettings>;

/// Configuration and statistics of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSettings {
    /// Estimated rows.
    pub rows: Option<u64>,
    /// Without indexes; from statistics.
    pub bytes: Option<u64>,
    /// Of all its indexes; from statistics.
    pub index_bytes: Option<u64>,
    /// From statistics.
    pub writes_per_second: Option<u64>,
    /// Used all the time.
    pub hot: bool,
    /// Nothing about it is reported, unless another relation is concerned as well.
    pub ignore: bool,
}

/// Configuration of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FunctionSettings {
    /// How often it is called in an hour of normal use.
    pub calls_per_hour: Option<u64>,
}

/// How often production has used an index, by its statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexUse {
    /// Scans of the index, at least one.
    pub scans: u64,
    /// The time in which they were counted, where the server says so.
    pub seconds: Option<u64>,
}

/// How large configuration says that a table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSize {
    Small,
    Unknown,
    Large,
}

impl TableSettings {
    /// Work on so many rows takes no time that anybody notices.
    pub const SMALL: u64 = 10_000;
    /// Work on so many rows takes minutes.
    const LARGE: u64 = 10_000_000;
    /// The same for its bytes, where rows are wide.
    const LARGE_BYTES: u64 = 10_000_000_000;
    /// With so many writes in a second, a queue behind a lock grows faster than it goes away.
    const BUSY: u64 = 100;

    pub fn size(self) -> TableSize {
        let busy = self.hot || self.writes_per_second.is_some_and(|writes| writes >= Self::BUSY);
        let has_many_bytes = self.bytes.is_some_and(|bytes| bytes >= Self::LARGE_BYTES);
        match self.rows {
            _ if busy || has_many_bytes => TableSize::Large,
            Some(rows) if rows >= Self::LARGE => TableSize::Large,
            Some(rows) if rows <= Self::SMALL => TableSize::Small,
            _ => TableSize::Unknown,
        }
    }
}

/// The entry of the qualified name, or else that of the name alone.
pub fn lookup<T: Copy + Default>(entries: &ByName<T>, schema: &str, name: &str) -> T {
    if entries.is_empty() {
        return T::default();
    }
    let qualified = entries.get(format!("{schema}.{name}").as_str());
    qualified.or_else(|| entries.get(name)).copied().unwrap_or_default()
}

/// How often configuration says that the function `schema.name` is called in an hour; `None` where it does not.
pub fn calls_per_hour(functions: &Functions, schema: &str, name: &str) -> Option<u64> {
    lookup(functions, schema, name).calls_per_hour
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_function_goes_before_the_name_alone() {
        let calls = |calls_per_hour| FunctionSettings { calls_per_hour: Some(calls_per_hour) };
        let functions = [("f".to_owned(), calls(5)), ("app.f".to_owned(), calls(40_000))].into_iter().collect();
        assert_eq!(calls_per_hour(&functions, "app", "f"), Some(40_000));
        assert_eq!(calls_per_hour(&functions, "public", "f"), Some(5));
        assert_eq!(calls_per_hour(&functions, "public", "g"), None);
    }
}
