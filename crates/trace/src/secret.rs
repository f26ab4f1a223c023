//! Passwords in statements, which no report shows.

mod code;

use std::ops::Range;

/// Replacement for a password.
const MASK: &str = "***";

/// The statement without its passwords: `PASSWORD 'x'`, `OPTIONS (password 'x')`, `password=x` of a connection string and
/// `postgres://user:x@host`, and constants that are joined with a text that ends with the word. Code in strings is searched
/// as well, so that too much is masked rather than too little.
/// Takes linear time: statements come from files of any size.
pub fn masked(sql: &str) -> String {
    let mut passwords = after_words(sql);
    code::passwords(sql, &mut passwords);
    passwords.extend(sql.match_indices("://").filter_map(|(at, sign)| in_url(sql, at + sign.len())));
    passwords.sort_by_key(|range| range.start);
    let mut shown = String::with_capacity(sql.len());
    let mut at = 0;
    for password in passwords {
        if password.start >= at {
            shown.push_str(&sql[at..password.start]);
            shown.push_str(MASK);
        }
        at = at.max(password.end);
    }
    shown + &sql[at..]
}

/// Returns the values after the word `password`, in order and apart from each other.
fn after_words(text: &str) -> Vec<Range<usize>> {
    let mut values: Vec<Range<usize>> = Vec::new();
    for (at, word) in text.to_ascii_lowercase().match_indices("password") {
        if values.last().is_none_or(|last| last.end <= at) {
            values.extend(after_word(text, at + word.len()));
        }
    }
    values
}

/// Returns the range of the value after the word; both may be in quotes.
fn after_word(text: &str, end: usize) -> Option<Range<usize>> {
    let value = text[end..].trim_start_matches(['"', ' ', '\t', '\r', '\n', '=']);
    let prefix = ["e'", "E'", "u&'", "U&'"].iter().find(|prefix| value.starts_with(**prefix));
    let value = prefix.map_or(value, |prefix| &value[prefix.len() - 1..]);
    let start = text.len() - value.len();
    if let Some(quoted) = value.strip_prefix('\'') {
        // Within a string quotes are doubled, and a doubled one belongs to the value.
        let quotes = value.len() - value.trim_start_matches('\'').len();
        let start = start + quotes;
        let inner = &quoted[quotes - 1..];
        return Some(start..start + end_of_quoted(inner)).filter(|range| !range.is_empty());
    }
    if let Some(open) = dollar_quote(value) {
        let (start, body) = (start + open.len(), &value[open.len()..]);
        // Without an end, everything is in the string.
        let length = body.find(open).unwrap_or(body.len());
        return (length > 0).then_some(start..start + length);
    }
    if !text[end..start].contains('=') {
        return None;
    }
    let length = value.find([' ', '\t', '\n', '\'', '"', ';', ')', '&']).unwrap_or(value.len());
    (length > 0).then_some(start..start + length)
}

/// Returns the `$tag$` with which a text begins.
fn dollar_quote(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let tag = rest.find(|one: char| one != '_' && !one.is_alphanumeric())?;
    let is_parameter = rest.starts_with(|one: char| one.is_ascii_digit());
    (rest[tag..].starts_with('$') && !is_parameter).then(|| &text[..tag + 2])
}

fn end_of_quoted(inner: &str) -> usize {
    let mut rest = inner;
    while let Some(at) = rest.find('\'') {
        if !rest[at + 1..].starts_with('\'') {
            return inner.len() - rest.len() + at;
        }
        rest = &rest[at + 2..];
    }
    inner.len()
}

fn in_url(text: &str, start: usize) -> Option<Range<usize>> {
    let authority = text[start..].split(['/', ' ', '\n', '\'', '"']).next()?;
    let (user_info, _) = authority.rsplit_once('@')?;
    let (user, password) = user_info.split_once(':')?;
    let start = start + user.len() + 1;
    (!password.is_empty()).then_some(start..start + password.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_masked_wherever_they_stand() {
        for sql in [
            "CREATE ROLE a PASSWORD 'hunter2'",
            "CREATE ROLE a ENCRYPTED PASSWORD 'hunter2' LOGIN",
            "ALTER USER a WITH PASSWORD E'hunter2'",
            "ALTER USER a WITH PASSWORD\n\t$x$hunter2$x$",
            "ALTER USER a PASSWORD 'x''hunter2'",
            "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'b', password 'hunter2')",
            "CREATE USER MAPPING FOR a SERVER s OPTIONS (user 'b', \"password\" 'hunter2')",
            "CREATE SUBSCRIPTION s CONNECTION 'host=h password=hunter2 user=a' PUBLICATION p",
            "CREATE SUBSCRIPTION s CONNECTION 'host=h password = hunter2' PUBLICATION p",
            "CREATE SUBSCRIPTION s CONNECTION 'host=h password=''hunter2'' user=a' PUBLICATION p",
            "SELECT dblink_connect('postgres://a:hunter2@h/d')",
            "SELECT dblink_connect('postgres://h/d?user=a&password=hunter2')",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ''hunter2'''; END $$",
            "ALTER ROLE a PASSWORD 'hunter2' ; ALTER ROLE b PASSWORD 'hunter2'",
            "SELECT dblink_connect('password=postgres://a:hunter2@h/d')",
            "SELECT dblink_connect('postgres://password=hunter2:hunter2@h/d')",
            "DO 'BEGIN EXECUTE $$ALTER ROLE a PASSWORD $x$hunter2$$; END'",
            "ALTER ROLE a PASSWORD U&'hunter2\\0033'",
            "ALTER ROLE a PASSWORD E'a\\'hunter2'",
            "ALTER ROLE a PASSWORD /* new */ 'hunter2'",
            "ALTER ROLE a PASSWORD 'a'\n  'hunter2'",
            "ALTER ROLE a PASSWORD 'a' -- b\n'b'\n'hunter2' LOGIN",
            "ALTER ROLE a PASSWORD E'a'\n'\\'hunter2'",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD U&''hunter2'''; END $$",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ' || quote_literal('hunter2'); END $$",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASSWORD ' || quote_literal($x$hunter2$x$); END $$",
            "DO 'BEGIN EXECUTE ''ALTER ROLE a PASSWORD '' || quote_literal(''hunter2''); END'",
            "DO $$ BEGIN EXECUTE format('ALTER ROLE %I PASSWORD %L', 'a', 'hunter2'); END $$",
            "DO $$ BEGIN EXECUTE format($f$ALTER ROLE a PASSWORD '%s'$f$, 'hunter2'); END $$",
            "DO $$ BEGIN EXECUTE concat('ALTER ROLE a PASSWORD ', quote_literal('hunter2')); END $$",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a PASS'||'WORD ''hunter2'''; END $$",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE a pa' || 'ss' || 'word ' || quote_literal('hunter2'); END $$",
            "DO $$ DECLARE v_password text; BEGIN v_password := 'hunter2'; END $$",
            "SELECT dblink_connect('host=h pass' || 'word=hunter2')",
            "SELECT dblink_connect('host=h password=' || 'hunter2')",
            "INSERT INTO settings VALUES ('password', 'hunter2')",
            "SELECT dblink_connect('password=eehunter2')",
        ] {
            let shown = masked(sql);
            assert!(!shown.contains("hunter2") && shown.contains(MASK), "{sql}: {shown}");
        }
    }

    #[test]
    fn other_statements_are_shown_as_they_are() {
        for sql in ["ALTER TABLE t ADD COLUMN password text", "SELECT 'http://h/a:b@c'", "ALTER ROLE a PASSWORD NULL"] {
            assert_eq!(masked(sql), sql);
        }
        let after = "SELECT format('password %L', 'x'); SELECT 'y'";
        assert_eq!(masked(after), "SELECT format('password %L', '***'); SELECT 'y'");
        assert_eq!(masked("SELECT * FROM t WHERE password = $1"), "SELECT * FROM t WHERE password = ***");
    }

    /// Of a text 20 times as long, quadratic work would take 400 times as long.
    #[test]
    fn masking_takes_linear_time() {
        for part in [
            "password",
            "password ",
            "password='x' ",
            "password $a$",
            "password$",
            "://a:b@",
            "://a:",
            "password'",
            "'password'||",
            "'pass'||'word',(",
            "$$'password',",
        ] {
            let text = |count: usize| part.repeat(count);
            let time = |text: String| {
                let started = std::time::Instant::now();
                assert!(masked(&text).len() <= 2 * text.len());
                started.elapsed()
            };
            let (short, long) = (time(text(5_000)), time(text(100_000)));
            assert!(long < short * 100 + std::time::Duration::from_millis(500), "{part}: {short:?}, {long:?}");
        }
    }
}
