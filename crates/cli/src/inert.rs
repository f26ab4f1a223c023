//! Output that does nothing but say something: a checkout chooses names and SQL, and a terminal, a CI service or a page
//! must not obey them.
//!
//! Every output goes through [`through`], whatever its format. Colours are marked with a number that nobody can
//! guess ([`mark`]); every other escape sequence is shown as text.

pub(crate) use pgvet_workspace::inert::{acts, line, lines};
use std::fmt::Write as _;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

/// How a format writes a character that does something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Lines that a CI service may read, too.
    Text,
    /// The same, with commands of our own for that service, or for a browser.
    Page,
    Json,
    Xml,
}

/// Writes something without what acts on its reader.
pub(crate) fn through<E: From<io::Error>>(
    out: &mut dyn Write,
    kind: Kind,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let mut inert = Inert { out, kind, line: Vec::new() };
    write(&mut inert)?;
    Ok(inert.finish()?)
}

/// The same for SQL or changes that another program may read: as they are, unless a person or a CI service sees them.
pub(crate) fn through_if_seen<E: From<io::Error>>(
    out: &mut dyn Write,
    write: impl FnOnce(&mut dyn Write) -> Result<(), E>,
) -> Result<(), E> {
    let is_set = |name: &&str| std::env::var_os(name).is_some();
    let is_seen = io::stdout().is_terminal() || ["CI", "GITHUB_ACTIONS", "TF_BUILD"].iter().any(is_set);
    if is_seen { through(out, Kind::Text, write) } else { write(out) }
}

/// Writes a line to standard error with a text in which a checkout may have its say: `note: TEXT`.
pub(crate) fn say(label: &str, text: &str) -> io::Result<()> {
    through(&mut io::stderr().lock(), Kind::Text, |out| writeln!(out, "{label}: {}", line(text)))
}

struct Inert<'a> {
    out: &'a mut dyn Write,
    kind: Kind,
    /// The line so far.
    line: Vec<u8>,
}

impl Inert<'_> {
    fn finish(mut self) -> io::Result<()> {
        let rest = std::mem::take(&mut self.line);
        self.emit(&rest)
    }

    fn emit(&mut self, line: &[u8]) -> io::Result<()> {
        if is_harmless(line) {
            return self.out.write_all(line);
        }
        self.out.write_all(inert(&String::from_utf8_lossy(line), self.kind).as_bytes())
    }
}

impl Write for Inert<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(at + 1);
            if self.line.is_empty() {
                self.emit(line)?;
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                self.emit(&whole)?;
            }
            rest = after;
        }
        self.line.extend_from_slice(rest);
        Ok(bytes.len())
    }

    /// A line is written once it is complete.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Most lines are: they hold nothing but letters, and no sign of a command.
fn is_harmless(line: &[u8]) -> bool {
    line.iter().all(|byte| is_plain(*byte) || *byte == b'#')
        && !line.windows(2).any(|pair| pair == b"##" || pair == b"::")
}

/// Whether it begins no character that acts, and no command inside a line.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\t' | b' '..=b'"' | b'$'..=b'~') || is_lead_of_letters(byte)
}

/// Not the first byte of a character that acts: U+0080 to U+00BF, U+0600 to U+063F, U+2000 to U+2FFF, U+F000 on.
fn is_lead_of_letters(byte: u8) -> bool {
    byte >= 0x80 && !matches!(byte, 0xc2 | 0xd8 | 0xe2 | 0xef | 0xf3 | 0xf4)
}

/// Signs with which CI services find commands anywhere in a line: of GitHub, of Azure, of `TeamCity`.
const COMMANDS: [&str; 3] = ["##[", "##vso[", "##teamcity["];

fn inert(line: &str, kind: Kind) -> String {
    let mut shown = String::with_capacity(line.len() + 16);
    let mut rest = line;
    // GitHub looks for its commands after blanks, too.
    if kind == Kind::Text && rest.trim_start_matches(is_blank).starts_with("::") {
        let blanks = rest.len() - rest.trim_start_matches(is_blank).len();
        push_shown(&mut shown, &rest[..blanks], kind);
        escape(&mut shown, ':', kind);
        rest = &rest[blanks + 1..];
    }
    push_shown(&mut shown, rest, kind);
    shown
}

fn is_blank(character: char) -> bool {
    character.is_whitespace() || acts(character)
}

fn push_shown(shown: &mut String, text: &str, kind: Kind) {
    let mut rest = text;
    loop {
        let (plain, other) = rest.split_at(rest.bytes().take_while(|byte| is_plain(*byte)).count());
        shown.push_str(plain);
        rest = other;
        let Some(character) = rest.chars().next() else { return };
        if let Some(after) = rest.strip_prefix(mark()) {
            let length = colour(after).max(link(after));
            shown.push_str(&after[..length]);
            rest = &after[length..];
            continue;
        }
        let after = &rest[character.len_utf8()..];
        let is_line_end = character == '\n' || (character == '\r' && after == "\n");
        if COMMANDS.iter().any(|sign| rest.starts_with(sign)) {
            shown.push('#');
            escape(shown, '#', kind);
            rest = &after[1..];
            continue;
        }
        if acts(character) && !is_line_end {
            escape(shown, character, kind);
        } else {
            shown.push(character);
        }
        rest = after;
    }
}

/// The bytes of a colour at the beginning: `ESC [ 1 ; 31 m`.
fn colour(text: &str) -> usize {
    let Some(codes) = text.strip_prefix("\x1b[") else { return 0 };
    match codes.find(|c: char| !(c.is_ascii_digit() || c == ';')) {
        Some(end) if codes[end..].starts_with('m') => end + 3,
        _ => 0,
    }
}

/// The bytes of the beginning or the end of a link to a page: `ESC ] 8 ; ; https://example.org ESC \`.
fn link(text: &str) -> usize {
    let Some(address) = text.strip_prefix("\x1b]8;;") else { return 0 };
    let is_harmless = |c: char| c.is_ascii_alphanumeric() || ":/._-".contains(c);
    match address.find(|c: char| !is_harmless(c)) {
        Some(end) if address[end..].starts_with("\x1b\\") => "\x1b]8;;".len() + end + 2,
        _ => 0,
    }
}

fn escape(shown: &mut String, character: char, kind: Kind) {
    let code = u32::from(character);
    // Writing into a text cannot fail.
    let _ = match kind {
        Kind::Text | Kind::Page => write!(shown, "\\u{{{code:x}}}"),
        Kind::Xml => write!(shown, "&#x{code:x};"),
        Kind::Json => {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(shown, "\\u{unit:04x}");
            }
            Ok(())
        }
    };
}

/// Mark before each colour that pgvet itself writes, so that escape sequences from a file are not taken for colours.
pub(crate) fn mark() -> &'static str {
    static MARK: OnceLock<String> = OnceLock::new();
    MARK.get_or_init(|| format!("\u{f8ff}{:016x}\u{f8ff}", RandomState::new().build_hasher().finish()))
}

/// Marks all colours of a text that was made of inert ones.
pub(crate) fn marked(text: &str) -> String {
    text.replace('\x1b', &format!("{}\x1b", mark()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, kind: Kind) -> String {
        let mut out = Vec::new();
        // In pieces, as formats write.
        through(&mut out, kind, |out| text.as_bytes().chunks(3).try_for_each(|piece| out.write_all(piece))).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_acts_is_shown() {
        let hostile = "a\x1b]52;c;x\x07b\u{9b}2J\u{202e}c\rd\u{2028}e\u{feff}f\u{e0041}\n";
        let expected = "a\\u{1b}]52;c;x\\u{7}b\\u{9b}2J\\u{202e}c\\u{d}d\\u{2028}e\\u{feff}f\\u{e0041}\n";
        assert_eq!(shown(hostile, Kind::Text), expected);
        assert_eq!(shown("\"\u{9b}\u{e0041}\"", Kind::Json), "\"\\u009b\\udb40\\udc41\"");
        assert_eq!(shown("<a>\u{202e}", Kind::Xml), "<a>&#x202e;");
        for text in ["é 漢 – x::int\n", "a\tb\r\nc", "# # [x]"] {
            assert_eq!(shown(text, Kind::Text), text);
        }
    }

    #[test]
    fn commands_of_ci_services_are_shown() {
        assert_eq!(shown("a\n \t::add-mask::x\n", Kind::Text), "a\n \t\\u{3a}:add-mask::x\n");
        assert_eq!(shown("\u{feff}::x::", Kind::Text), "\\u{feff}\\u{3a}:x::");
        assert_eq!(shown("::error::x ##[group]\n", Kind::Page), "::error::x #\\u{23}[group]\n");
        assert_eq!(shown("a ##vso[x] ##teamcity[x]", Kind::Text), "a #\\u{23}vso[x] #\\u{23}teamcity[x]");
        assert_eq!(shown("\"##[group]\"", Kind::Json), "\"#\\u0023[group]\"");
    }

    #[test]
    fn only_our_colours_are_passed_on() {
        let ours = format!("{}\x1b[1;31mx{}\x1b[0m \x1b[31m", mark(), mark());
        assert_eq!(shown(&ours, Kind::Text), "\x1b[1;31mx\x1b[0m \\u{1b}[31m");
        assert_eq!(shown(&format!("{}\x1b[2J", mark()), Kind::Text), "\\u{1b}[2J");
        let link = format!("{0}\x1b]8;;https://x.org/a-b\x1b\\a{0}\x1b]8;;\x1b\\", mark());
        assert_eq!(shown(&link, Kind::Text), "\x1b]8;;https://x.org/a-b\x1b\\a\x1b]8;;\x1b\\");
        let hostile = format!("{}\x1b]8;;https://x.org/\x07\x1b\\", mark());
        assert!(!shown(&hostile, Kind::Text).contains('\x1b'));
    }
}
