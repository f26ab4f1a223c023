//! The lexer against PostgreSQL's own scanner: the same tokens with the same boundaries.

use pgvet_syntax::lexer::{Lexer, TokenKind};
use pgvet_syntax::source::TextRange;

const SNIPPETS: &[&str] = &[
    "SELECT 1",
    "select\ta\u{b}b\u{c}c\r\nd",
    "SELECT 'it''s'",
    r"SELECT E'a\'b\\' || 'c'",
    r"SELECT e'\\\'' x",
    r"SELECT '\' || '\\'",
    "SELECT 'a'\n'b'",
    "SELECT 'a'   \n\t  'b'\n'c' x",
    "SELECT 'a' 'b'",
    "SELECT 'a' -- comment\n 'b'",
    "SELECT 'a'\n-- comment\n 'b'",
    "SELECT 'a'\n-- comment without end",
    "SELECT 'a' /* c */\n 'b'",
    "SELECT 'a'\r'b'",
    r"SELECT E'a\''
 'b\''",
    "SELECT N'abc', n'x'",
    "SELECT B'0101', b'1', X'1F', x'ff'",
    "SELECT U&'d\\0061t\\+000061'",
    "SELECT U&\"d\\0061t\\+000061\" FROM t",
    "SELECT U&'!0061' UESCAPE '!'",
    "SELECT u & 'x', u&b",
    "SELECT e, n, b, x, E FROM e.x",
    "SELECT \"a\"\"b\", \"A;B\" FROM \"t\".\"c\"",
    "SELECT $$a;b$$, $$$$",
    "SELECT $f$ $$ x $$ $g$ y $g$ $f$",
    "SELECT $ä$ x $ä$",
    "SELECT $a$b$ab$c$a$",
    "SELECT $_1$ ' $_1$",
    "SELECT $1, $2+$33",
    "SELECT a$b, a$1, b$$",
    "SELECT foo$bar$ FROM t",
    "SELECT 1.5, .5, 5., 1e10, 1.5e-3, 1E+5, 1_000, 0xFF, 0o17, 0b101, 0x_ff",
    "SELECT 1_000.5_0, 1e1_0",
    "SELECT t.a.b, t.*",
    "SELECT a[1:2], a[:3], a[x:y], b[1:]",
    "SELECT 1..2",
    "SELECT a::int::text, b := c",
    "SELECT f(a=>1, b := 2, c => -3, d=>-1)",
    "SELECT a=>-- comment\n1",
    "SELECT a<=b, a>=b, a<>b, a!=b, a<b, a>b",
    "SELECT a=-1, a=+1, a<-1, a*-1, a@-1, a!-1, a|-b, a||-b, -+-a",
    "SELECT a+-b, a-+b, a- -b, a%-1, a^-2",
    "SELECT a<--x\n1",
    "SELECT a+/* x */b, a*/**/b, a/ /* x */ b",
    "SELECT a->'b'->>'c', a#>'{x}', a#>>'{x}', a@>b, a<@b, a?b, a?|b, a?&b",
    "SELECT a ~ 'x', a !~* 'y', a ~~ 'z', @a, |/4, ||/8, !!5",
    "SELECT a OPERATOR(pg_catalog.+) b, `a`",
    "SELECT /* a /* b */ c */ 1",
    "SELECT /*/ x */ 1 /**/ + /***/ 2 /* **/",
    "SELECT /* -- */ 1 -- /* \n+ 2",
    "SELECT /*/**/*/ 1",
    "-- only a comment",
    "",
    ";;",
    "SELECT (a, b), ROW(1), ARRAY[1,2], {d '2000-01-01'",
    "SELECT * FROM a*b",
    "SELECT 'ünï', \"ñame\", größe, 日本 FROM t",
    "SELECT a\u{a0}b",
    "CREATE TABLE t (a int DEFAULT 1, b text CHECK (b <> ''))",
    "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS $$ SELECT 1; $$; SELECT 2",
    "SELECT :'x', :\"x\", :x, :: int",
    "SELECT @extschema@.f(), \\x",
    "SELECT '\n;\n', 'a--b', 'a/*b'",
    "SELECT a--b\r, c",
    "SELECT a-- b",
    "SELECT 1 AS \"x\"\"\", 2",
    "SELECT 'x'::\"char\", int '1', interval '1' day",
    "SELECT a ## b, a <-> b, a &< b, a &&& b, a -|- b, a <<| b",
    "SELECT a<>-1, a>=-1, a@@@-1, a=~-b",
    "SELECT x'1'y, E'a'b, 'a'b",
    "SELECT a.b.c[1].d, (a).b, a . b",
    "SELECT 1;SELECT 2;",
    "SELECT # 1, 5 # 3",
    "SELECT 12.e3, 12.5e",
    "SELECT $a, $ b",
];

/// PostgreSQL's tokens; `None` when it refuses the text.
fn scanned(source: &str) -> Option<Vec<(u32, u32)>> {
    let tokens = pg_query::scan(source).ok()?.tokens;
    let is_comment = |token: i32| {
        token == pg_query::protobuf::Token::SqlComment as i32 || token == pg_query::protobuf::Token::CComment as i32
    };
    Some(
        tokens
            .iter()
            .filter(|token| !is_comment(token.token))
            .map(|token| (token.start.cast_unsigned(), token.end.cast_unsigned()))
            .collect(),
    )
}

#[test]
fn boundaries_are_those_of_postgresql() {
    let mut compared = 0;
    for source in SNIPPETS {
        let Some(expected) = scanned(source) else { continue };
        let found: Vec<_> = Lexer::new(source, TextRange::new(0, source.len() as u32))
            .map(|token| (token.range.start, token.range.end))
            .collect();
        let show = |ranges: &[(u32, u32)]| {
            ranges.iter().map(|(start, end)| source[*start as usize..*end as usize].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(show(&found), show(&expected), "{source:?}");
        assert_eq!(found, expected, "{source:?}");
        compared += 1;
    }
    assert!(compared >= 60, "PostgreSQL refused too many: {compared} left of {}", SNIPPETS.len());
}

#[test]
fn what_postgresql_finds_unterminated_is_marked() {
    for source in
        ["'a", "SELECT 'a''", "E'a\\'", "\"a", "U&\"a", "$$ a", "$f$ a $g$", "/* a", "/* /* a */", "x'1", "'a'\n'b"]
    {
        assert!(scanned(source).is_none(), "{source}");
        let last = Lexer::new(source, TextRange::new(0, source.len() as u32)).last().unwrap();
        assert_eq!((last.kind, last.range.end), (TokenKind::Unterminated, source.len() as u32), "{source}");
    }
}
