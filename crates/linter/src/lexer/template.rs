//! Placeholders that can never be SQL: `{{ ... }}`, `{% ... %}`, `{# ... #}`, `{name}`, `${name}`, `$%NAME%$`, and
//! `$name$` glued to the rest of an identifier.

/// A tag longer than this is not looked for, which keeps reading linear.
const MAX_TAG: usize = 2048;
/// How far a dollar quote is searched for its end before `$name$_` counts as a placeholder.
const MAX_DOLLAR_BODY: usize = 65_536;

/// The length of the placeholder that `text` begins with.
pub(super) fn length(text: &[u8]) -> Option<usize> {
    match text {
        [b'{', b'{', ..] => closing(text, b"}}"),
        [b'{', b'%', ..] => closing(text, b"%}"),
        [b'{', b'#', ..] => closing(text, b"#}"),
        [b'$', b'{', ..] => named(&text[1..]).map(|length| length + 1),
        [b'{', ..] => named(text),
        [b'$', b'%', ..] => {
            let name = word_length(&text[2..]);
            (name > 0 && text[2 + name..].starts_with(b"%$")).then_some(name + 4)
        }
        [b'$', ..] => glued(text),
        _ => None,
    }
}

fn closing(text: &[u8], end: &[u8]) -> Option<usize> {
    super::find(&text[..text.len().min(MAX_TAG)], end).map(|at| at + end.len())
}

/// `{name}`, `{name:-default}`, `{name.part}` on one line.
fn named(text: &[u8]) -> Option<usize> {
    let end = text.iter().take(MAX_TAG).position(|byte| matches!(byte, b'}' | b'\n' | b'\r' | b'\'' | b'"' | b';'))?;
    (end > 1 && text[end] == b'}').then_some(end + 1)
}

/// `$name$_suffix` or `$name$.object`, unless it opens a dollar quote that is closed as one.
fn glued(text: &[u8]) -> Option<usize> {
    let name = word_length(&text[1..]);
    let tag = text.get(..name + 2)?;
    if name == 0
        || tag[1].is_ascii_digit()
        || tag[name + 1] != b'$'
        || !text.get(tag.len()).is_some_and(|byte| matches!(byte, b'_' | b'.'))
    {
        return None;
    }
    let body = &text[tag.len()..text.len().min(MAX_DOLLAR_BODY)];
    let closed = super::find(body, tag).is_some_and(|at| {
        !body.get(at + tag.len()).is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.'))
    });
    (!closed).then_some(tag.len())
}

fn word_length(text: &[u8]) -> usize {
    text.iter().take(64).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_their_lengths() {
        for (text, placeholder) in [
            ("{{ index .Options \"Namespace\" }}.users", "{{ index .Options \"Namespace\" }}"),
            ("{% if x %}a", "{% if x %}"),
            ("${schema}.t", "${schema}"),
            ("${schema:-public}.t", "${schema:-public}"),
            ("$%AUTO%$,", "$%AUTO%$"),
            ("$db_user_prefix$_auth; x", "$db_user_prefix$"),
            ("$p$_a; $p$_b", "$p$"),
            ("{schema}.t", "{schema}"),
        ] {
            assert_eq!(length(text.as_bytes()), Some(placeholder.len()), "{text}");
        }
    }

    #[test]
    fn dollar_quotes_are_none() {
        for text in ["$$ a $$", "$f$ a $f$", "$re$_%$re$)", "$1", "{}", "{'a'}", "{{ open"] {
            assert_eq!(length(text.as_bytes()), None, "{text}");
        }
    }
}
