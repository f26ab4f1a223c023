//! Passwords in statements, which no report shows.

/// Replacement for a password.
const MASK: &str = "***";

/// The statement without its passwords: `PASSWORD 'x'`, `OPTIONS (password 'x')`, `password=x` of a connection string and
/// `postgres://user:x@host`. Code in strings is searched as well, so that too much is masked rather than too little.
pub fn masked(sql: &str) -> String {
    let mut shown = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((start, end)) = next(rest) {
        shown.push_str(&rest[..start]);
        shown.push_str(MASK);
        rest = &rest[end..];
    }
    shown + rest
}

/// Returns the range of the next password.
fn next(text: &str) -> Option<(usize, usize)> {
    let lower = text.to_ascii_lowercase();
    let after_word = lower.match_indices("password").find_map(|(at, word)| after_word(text, at + word.len()));
    let in_url = lower.match_indices("://").find_map(|(at, sign)| in_url(text, at + sign.len()));
    [after_word, in_url].into_iter().flatten().min()
}

/// Returns the range of the value after the word; both may be in quotes.
fn after_word(text: &str, end: usize) -> Option<(usize, usize)> {
    let value = text[end..].trim_start_matches(['"', ' ', '\t', '\r', '\n', '=', 'e', 'E']);
    let has_sign = text[end..text.len() - value.len()].contains('=');
    let start = text.len() - value.len();
    if let Some(quoted) = value.strip_prefix('\'') {
        // Within a string quotes are doubled, and a doubled one belongs to the value.
        let quotes = value.len() - value.trim_start_matches('\'').len();
        let start = start + quotes;
        let inner = &quoted[quotes - 1..];
        return Some((start, start + end_of_quoted(inner))).filter(|(start, end)| start < end);
    }
    if let Some(rest) = value.strip_prefix('$')
        && let Some(tag) = rest.find('$')
    {
        let (open, body) = value.split_at(tag + 2);
        return body
            .find(open)
            .filter(|length| *length > 0)
            .map(|length| (start + open.len(), start + open.len() + length));
    }
    let length = value.find([' ', '\t', '\n', '\'', '"', ';', ')', '&']).unwrap_or(value.len());
    (has_sign && length > 0).then_some((start, start + length))
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

fn in_url(text: &str, start: usize) -> Option<(usize, usize)> {
    let authority = text[start..].split(['/', ' ', '\n', '\'', '"']).next()?;
    let (user_info, _) = authority.rsplit_once('@')?;
    let (user, password) = user_info.split_once(':')?;
    let start = start + user.len() + 1;
    (!password.is_empty()).then_some((start, start + password.len()))
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
    }
}
