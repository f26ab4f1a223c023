//! Scripts that try to make one reader see other statements than another.

use super::super::random::Random;

/// Parts of scripts. `#` stands for a number.
const PARTS: [&str; 78] = [
    "SELECT #;",
    "SELECT #;",
    "SELECT #;\n",
    "SELECT #\n",
    "SELECT '#';",
    "SELECT '\\';",
    "SELECT '\\'; SELECT #; --';",
    "SELECT 'it''s #';",
    "SELECT E'\\'; SELECT #; --';",
    "SELECT E'a'\n'\\'; SELECT #; --';",
    "SELECT 'a'\n'\\';",
    "SELECT \"a;\" FROM (SELECT # AS \"a;\") AS s;",
    "SELECT $$;#$$;",
    "SELECT $a$ $$ ; $a$;",
    "SELECT $a$_#$a$_b;",
    "SELECT a$b$ FROM (SELECT # AS a$b$) AS s;",
    "SELECT (#;",
    "SELECT #);",
    ");",
    "'",
    "\"",
    "$$",
    "E'",
    "--",
    "/*",
    "*/",
    "/* ; /* ' */ \" */",
    "-- ' ;",
    ";",
    "\n",
    "\n",
    "\n",
    "\r",
    "\t",
    "\\;",
    "SELECT #\\; SELECT #;",
    "\\\\",
    "\\echo a",
    "\\echo a \\\\ SELECT #;",
    "\\echo 'a \\\\ SELECT #;\n",
    "\\echo it's\n",
    "\\echo \"a\\\\\"\n",
    "\\timing off\n",
    "\\timing off \\\\ SELECT #;\n",
    "\\nothing \\\\ SELECT #;\n",
    "\\g\n",
    "\\gset\n",
    "\\r\n",
    "\\p \\r SELECT #;\n",
    "\\if true\n",
    "\\if 0\n",
    "\\if false \\\\ SELECT #; \\endif\n",
    "\\elif 1\n",
    "\\else\n",
    "\\endif\n",
    "\\endif\n",
    "\\set v #\n",
    "SELECT :v;",
    "SELECT a[1:v] FROM (SELECT ARRAY[#] AS a, 1 AS v) AS s;",
    "COPY t FROM stdin;\n#\n\\.\n",
    "COPY t FROM stdin;\nSELECT #;\n\\.\n",
    "COPY t FROM stdin; SELECT #;\n'\n\\.\n",
    "COPY t TO stdout;\n",
    "COPY (SELECT # FROM t AS stdin) TO stdout;\n",
    "\\copy t from stdin\n#\n\\.\n",
    "\\.\n",
    "SET standard_conforming_strings = off;",
    "SET standard_conforming_strings TO 'of';",
    "SET standard_conforming_strings = on;",
    "RESET \"standard_conforming_strings\";",
    "SET LOCAL standard_conforming_strings = off;",
    "SELECT set_config('standard_conforming_strings', 'off', false);",
    "BEGIN;",
    "COMMIT;",
    "ROLLBACK;",
    "SAVEPOINT a;",
    "ROLLBACK TO a;",
    "SELECT #+/*;*/#;",
];

/// The script of a seed.
pub(super) fn script(seed: u64) -> String {
    let mut random = Random::new(seed);
    let mut script = String::new();
    for _ in 0..4 + random.below(10) {
        let part = random.one_of(&PARTS).copied().unwrap_or_default();
        script.push_str(&part.replace('#', &random.below(1000).to_string()));
        match random.below(4) {
            0 => script.push('\n'),
            1 => script.push(' '),
            _ => {}
        }
    }
    script
}
