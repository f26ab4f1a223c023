//! The source of the documentation site: the pages of the repository in their own folders, so that links hold, and a
//! table of contents. mdBook makes HTML of it (`.ci/site`).

use crate::repository;
use pgvet_linter::rules;
use pulldown_cmark::{Event, Parser, Tag};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Pages of the guide, in the order in which a reader needs them. Others in `docs` follow.
const GUIDE: &[&str] = &[
    "check",
    "fixing",
    "phases",
    "precheck",
    "trace",
    "capture",
    "adopting",
    "ci",
    "pre-commit",
    "editors",
    "statistics",
    "schema",
    "roundtrip",
    "reduce",
];

/// Pages to look things up in. They come after the guide.
const REFERENCE: &[&str] = &["configuration", "formats", "comparison"];

/// The page about migration tools, with a page for each tool below it.
const TOOLS: &str = "migration-tools";

/// Pages about the project.
const PROJECT: &[&str] = &["SECURITY.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The folder to write to. What is in it is removed.
    #[arg(long, default_value = "target/site")]
    out: PathBuf,
}

/// Writes the source of the site.
pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    write(&arguments.out).map_err(|error| format!("cannot write the site to {}: {error}", arguments.out.display()))
}

fn write(out: &Path) -> io::Result<()> {
    let root = repository();
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let contents = contents(&root)?;
    for page in contents.pages.iter().map(PathBuf::as_path) {
        let text = fs::read_to_string(root.join(page))?;
        for linked in links(page, &text) {
            if !contents.pages.contains(&linked) && root.join(&linked).is_file() {
                copy(&root, &linked, out)?;
            }
        }
        let target = out.join("src").join(index(page));
        fs::create_dir_all(target.parent().unwrap_or(out))?;
        fs::write(target, index_links(&text))?;
    }
    fs::write(out.join("src/SUMMARY.md"), index_links(&contents.summary))?;
    fs::copy(root.join("docs/book.toml"), out.join("book.toml")).map(drop)
}

/// Where a page is in the source of the site: mdBook makes `index.html` of a README, but links lead to `README.html`.
fn index(page: &Path) -> PathBuf {
    if page.ends_with("README.md") { page.with_file_name("index.md") } else { page.to_owned() }
}

fn index_links(text: &str) -> String {
    text.replace("README.md)", "index.md)").replace("README.md#", "index.md#")
}

fn copy(root: &Path, file: &Path, out: &Path) -> io::Result<()> {
    let target = out.join("src").join(file);
    fs::create_dir_all(target.parent().unwrap_or(out))?;
    fs::copy(root.join(file), target).map(drop)
}

/// The pages of the site, and mdBook's table of contents.
struct Contents {
    pages: BTreeSet<PathBuf>,
    summary: String,
}

impl Contents {
    fn part(&mut self, title: &str) {
        let _ = write!(self.summary, "\n# {title}\n\n");
    }

    fn page(&mut self, root: &Path, path: &str, depth: usize) -> io::Result<()> {
        let text = fs::read_to_string(root.join(path))?;
        let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or(path);
        let _ = writeln!(self.summary, "{:1$}- [{title}]({path})", "", depth * 2);
        self.pages.insert(path.into());
        Ok(())
    }
}

fn contents(root: &Path) -> io::Result<Contents> {
    let mut contents =
        Contents { pages: ["README.md".into()].into(), summary: "# Summary\n\n[pgvet](README.md)\n".into() };
    let named = |name: &str| GUIDE.contains(&name) || REFERENCE.contains(&name) || name == TOOLS;
    contents.part("Guide");
    let others = names(&root.join("docs"))?.into_iter().filter(|name| !named(name));
    for name in GUIDE.iter().map(|name| (*name).to_owned()).chain(others) {
        contents.page(root, &format!("docs/{name}.md"), 0)?;
    }
    contents.part("Reference");
    contents.page(root, &format!("docs/{TOOLS}.md"), 0)?;
    for name in names(&root.join("docs/tools"))? {
        contents.page(root, &format!("docs/tools/{name}.md"), 1)?;
    }
    for name in REFERENCE {
        contents.page(root, &format!("docs/{name}.md"), 0)?;
    }
    contents.part("Rules");
    contents.page(root, "rules/README.md", 0)?;
    let mut category = None;
    for meta in rules::all().iter().map(|rule| &rule.meta) {
        if category.replace(meta.category) != Some(meta.category) {
            let _ = writeln!(contents.summary, "- [{}]()", meta.category.as_str());
        }
        contents.page(root, &format!("rules/{}.md", meta.name), 1)?;
    }
    contents.page(root, "rules/messages.md", 0)?;
    contents.part("Project");
    for page in PROJECT {
        contents.page(root, page, 0)?;
    }
    Ok(contents)
}

/// The names of the pages in a folder, without their extension.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        names.extend(name.strip_suffix(".md").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// The files of the repository that a page links to, as paths from its top.
fn links(page: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for event in Parser::new(text) {
        if let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event {
            let file = dest_url.split('#').next().unwrap_or_default();
            if !file.is_empty() && !file.contains(':') {
                found.push(joined(page.parent().unwrap_or(Path::new("")), file));
            }
        }
    }
    found
}

/// A relative path seen from a folder, without `..`.
fn joined(folder: &Path, relative: &str) -> PathBuf {
    let mut path = folder.to_owned();
    for component in Path::new(relative).components() {
        match component {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_of_the_site_leads_to_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("site");
        write(&out).unwrap();
        let mut broken = Vec::new();
        for page in contents(&repository()).unwrap().pages {
            let text = fs::read_to_string(out.join("src").join(index(&page))).unwrap();
            let missing = links(&page, &text).into_iter().filter(|linked| !out.join("src").join(linked).is_file());
            broken.extend(missing.map(|linked| format!("{} -> {}", page.display(), linked.display())));
        }
        assert_eq!(broken, Vec::<String>::new());
    }

    #[test]
    fn every_page_of_the_documentation_is_in_the_table_of_contents() {
        let root = repository();
        let contents = contents(&root).unwrap();
        for folder in ["docs", "docs/tools", "rules"] {
            for name in names(&root.join(folder)).unwrap() {
                let page = PathBuf::from(format!("{folder}/{name}.md"));
                assert!(contents.pages.contains(&page), "{} is not in the table of contents", page.display());
            }
        }
    }
}
