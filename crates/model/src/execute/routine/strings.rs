//! Code in which strings end elsewhere if `standard_conforming_strings` is off. It is read as if the setting were on.
//!
//! Source: PostgreSQL 18, `src/backend/parser/scan.l`, `xqs`: a text is read when it runs, with the setting of that time.
//! Seen on servers of 14 and 18 in functions, DO and EXECUTE.

use super::Executor;
use crate::catalog::Oid;
use crate::effect::UnknownReason;
use crate::session::{CONFORMING_STRINGS, switch};
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// What does not end a string if the setting is off, and may end one if it is on.
const ESCAPED_QUOTE: &str = "\\'";

impl Executor<'_> {
    /// Notes a text that runs while the setting may be off, or that may change it.
    pub(super) fn doubt_strings(&mut self, text: &str) {
        let Some(at) = text.find(ESCAPED_QUOTE) else { return };
        let is_on = self.session.settings.conforming_strings() == Some(true);
        if !is_on
            || text.contains(CONFORMING_STRINGS)
            || self.running.iter().any(|(function, _)| self.turns_off(*function))
        {
            let at = at as u32;
            self.skip_code(UnknownReason::Strings, TextRange::new(at, at + ESCAPED_QUOTE.len() as u32), true);
        }
    }

    /// Whether a SET clause of a function that runs, or that has called what runs, may turn the setting off.
    fn turns_off(&self, function: Oid) -> bool {
        let turns_off = |(name, value): &(SmolStr, SmolStr)| name == CONFORMING_STRINGS && switch(value) != Some(true);
        self.catalog.get_function(function).is_some_and(|function| function.settings.iter().any(turns_off))
    }
}

#[cfg(test)]
mod tests {
    use crate::effect::UnknownReason;
    use crate::execute::testing::effects_on;

    #[test]
    fn code_with_other_strings_is_not_analyzed() {
        const OFF: &str = "SET standard_conforming_strings = off;";
        const TEXT: &str = r"SELECT 'a\''; DROP TABLE t; --'";
        let function =
            |options: &str| format!("CREATE FUNCTION f() RETURNS void LANGUAGE sql {options} AS $$ {TEXT} $$;");
        let own = function("SET standard_conforming_strings = off");
        let on_again = format!("{OFF} {} SET standard_conforming_strings = on;", function(""));
        let nested = format!(
            "{} CREATE FUNCTION g() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off \
             AS $$ BEGIN PERFORM f(); END $$;",
            function("")
        );
        let decoded = r"CREATE FUNCTION h() RETURNS void LANGUAGE plpgsql SET standard_conforming_strings = off
            AS $$ BEGIN EXECUTE E'SELECT \x27a\x5c\x27\x27; DROP TABLE t; --\x27'; END $$;";
        for (history, sql, is_doubted) in [
            ("", format!("{OFF} DO $d$ BEGIN EXECUTE $x${TEXT}$x$; END $d$"), true),
            ("", format!("DO $d$ BEGIN {OFF} EXECUTE $x${TEXT}$x$; END $d$"), true),
            ("", format!("DO $d$ BEGIN EXECUTE $x${TEXT}$x$; END $d$"), false),
            (&own, "SELECT f()".to_owned(), true),
            ("", format!("{OFF} {} SELECT f()", function("")), true),
            ("", format!("{on_again} SELECT f()"), false),
            (&nested, "SELECT g()".to_owned(), true),
            (decoded, "SELECT h()".to_owned(), true),
        ] {
            let effects = effects_on(17, history, &sql);
            let unknown = effects.unknown.iter().any(|unknown| unknown.reason == UnknownReason::Strings);
            assert_eq!(unknown, is_doubted, "{history} {sql}");
        }
    }
}
