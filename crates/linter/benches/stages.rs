//! `cargo bench -p pgvet-linter`: what each stage of a check costs, on the fixtures of the project.
//!
//! Each stage includes those before it that it needs: `effects` is given parsed files, `rules` runs the effects too.

use divan::Bencher;
use divan::counter::BytesCount;
use pgvet_linter::check::check;
use pgvet_linter::settings::Settings;
use pgvet_model::migration::Migration;
use pgvet_model::predict;
use pgvet_syntax::lexer::{TokenKind, tokenize};
use pgvet_syntax::plpgsql::{self, BodyText};
use pgvet_syntax::source::{SourceFile, TextRange};
use pgvet_syntax::statement::{self, ParsedFile, parse_file};
use std::path::{Path, PathBuf};

fn main() {
    divan::main();
}

#[divan::bench]
fn split(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    bencher
        .counter(size_of(&texts))
        .bench(|| texts.iter().map(|text| statement::split(text).pieces.len()).sum::<usize>());
}

/// PostgreSQL's own grammar, the tree left where it is.
#[divan::bench]
fn postgresql_parser(bencher: Bencher<'_, '_>) {
    let statements = statements();
    bencher.counter(size_of(&statements)).bench(|| {
        statements.iter().filter_map(|sql| pgvet_parser::parse(sql, |parsed| parsed.len()).ok()).sum::<usize>()
    });
}

/// Split, parsed and turned into our own types.
#[divan::bench]
fn parse_and_convert(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    bencher.counter(size_of(&texts)).bench(|| parsed(&texts).len());
}

#[divan::bench]
fn plpgsql_reader(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    let bodies: Vec<(&str, TextRange)> = texts.iter().flat_map(|text| bodies(text)).collect();
    let size: usize = bodies.iter().map(|(_, range)| (range.end - range.start) as usize).sum();
    bencher.counter(BytesCount::new(size)).bench(|| {
        bodies
            .iter()
            .map(|(text, range)| plpgsql::read(&BodyText::from_literal(text, *range)).errors.len())
            .sum::<usize>()
    });
}

/// Replay on the catalog, all majors, without rules.
#[divan::bench]
fn effects(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    let files = parsed(&texts);
    let migrations: Vec<Migration<'_>> = files.iter().map(Migration::new).collect();
    let settings = Settings::default();
    bencher
        .counter(size_of(&texts))
        .bench(|| predict::effects(&migrations, settings.versions.to, &settings.functions).len());
}

/// Replay with all rules.
#[divan::bench]
fn rules(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    let files = parsed(&texts);
    let migrations: Vec<Migration<'_>> = files.iter().map(Migration::new).collect();
    let settings = Settings::default();
    bencher.counter(size_of(&texts)).bench(|| check(&migrations, &settings).len());
}

/// From text to findings.
#[divan::bench]
fn end_to_end(bencher: Bencher<'_, '_>) {
    let texts = fixtures();
    let settings = Settings::default();
    bencher.counter(size_of(&texts)).bench(|| {
        let files = parsed(&texts);
        let migrations: Vec<Migration<'_>> = files.iter().map(Migration::new).collect();
        check(&migrations, &settings).len()
    });
}

fn parsed(texts: &[String]) -> Vec<ParsedFile> {
    let source = |(at, text): (usize, &String)| SourceFile::new(format!("{at}.sql"), text.clone());
    texts.iter().enumerate().map(source).map(parse_file).collect()
}

fn size_of(texts: &[String]) -> BytesCount {
    BytesCount::new(texts.iter().map(String::len).sum::<usize>())
}

/// The migrations of the sample project, of the rules and of what random statements once showed.
fn fixtures() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut files: Vec<PathBuf> =
        ["demo", "rules", "generated"].iter().flat_map(|name| sql_below(&root.join(name))).collect();
    files.sort();
    let read =
        |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    files.iter().map(read).collect()
}

fn sql_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .flat_map(|path| match path.extension() {
            _ if path.is_dir() => sql_below(&path),
            Some(extension) if extension == "sql" => vec![path],
            _ => Vec::new(),
        })
        .collect()
}

fn statements() -> Vec<String> {
    let texts = fixtures();
    let of_text = |text: &String| {
        let pieces = statement::split(text).pieces.into_iter().filter(|piece| piece.kind.is_statement());
        pieces.filter_map(|piece| text.get(piece.range.as_usize()).map(str::to_owned)).collect::<Vec<_>>()
    };
    texts.iter().flat_map(of_text).collect()
}

/// The dollar-quoted strings of a text, which are mostly bodies of functions.
fn bodies(text: &str) -> Vec<(&str, TextRange)> {
    let tokens = tokenize(text, TextRange::new(0, text.len() as u32));
    tokens.into_iter().filter(|token| token.kind == TokenKind::DollarString).map(|token| (text, token.range)).collect()
}
