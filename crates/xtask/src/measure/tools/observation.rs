//! The observed run of a tool on a project, as text that people can read and tests compare.

use std::fmt::Write as _;

/// A table or an index that was created, committed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub file: String,
    /// `table public.t`
    pub object: String,
    /// Numbers count from 1 in the order in which they first appear in a run.
    pub session: usize,
    pub transaction: usize,
    pub message: usize,
    pub protocol: Protocol,
    /// In milliseconds.
    pub lock_timeout: u64,
}

/// How a message reaches the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Simple,
    Extended,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Success,
    /// The tool said that something is wrong.
    Failure,
    /// It waited for itself.
    Never,
}

/// One run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    pub steps: Vec<Step>,
    /// The SQLSTATE of the first error that a statement of the project met.
    pub error: Option<String>,
    pub end: End,
    /// What the tool said when it refused to run; recorded for changes.
    pub says: Option<String>,
    /// Tables and indexes of the project that are there afterwards, with `invalid` ones marked.
    pub left: Vec<String>,
}

/// The same observation in one or several versions of the tool and of PostgreSQL.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub case: String,
    pub version: String,
    pub majors: Vec<u8>,
    pub seen: Observation,
}

const HEAD: &str = "# Written by `cargo xtask measure tools`: what the tool did, as the log of the server shows it.\n\
                    # step: session, transaction, message, protocol, lock_timeout, file, object\n";

/// Writes down all observations of a tool.
pub(super) fn write(recorded: &[Recorded]) -> String {
    let mut text = HEAD.to_owned();
    for Recorded { case, version, majors, seen } in recorded {
        let majors: Vec<String> = majors.iter().map(u8::to_string).collect();
        let _ = writeln!(text, "\n[{case}] version {version}, PostgreSQL {}", majors.join(" "));
        for step in &seen.steps {
            let Step { file, object, session, transaction, message, protocol, lock_timeout } = step;
            let protocol = match protocol {
                Protocol::Simple => "simple",
                Protocol::Extended => "extended",
            };
            let _ = writeln!(text, "step {session} {transaction} {message} {protocol} {lock_timeout} {file} {object}");
        }
        if let Some(error) = &seen.error {
            let _ = writeln!(text, "error {error}");
        }
        let end = match seen.end {
            End::Success => "success",
            End::Failure => "failure",
            End::Never => "never",
        };
        let _ = writeln!(text, "end {end}");
        if let Some(says) = &seen.says {
            let _ = writeln!(text, "says {says}");
        }
        for object in &seen.left {
            let _ = writeln!(text, "left {object}");
        }
    }
    text
}

/// Reads what [`write`] has written.
///
/// # Errors
/// The line that cannot be read.
pub(super) fn read(text: &str) -> Result<Vec<Recorded>, String> {
    let mut recorded: Vec<Recorded> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let understood = match line.strip_prefix('[') {
            Some(head) => read_head(head).map(|head| recorded.push(head)),
            None => recorded.last_mut().and_then(|last| read_line(line, &mut last.seen)),
        };
        understood.ok_or_else(|| format!("cannot read the line: {line}"))?;
    }
    Ok(recorded)
}

fn read_head(head: &str) -> Option<Recorded> {
    let (case, rest) = head.split_once("] version ")?;
    let (version, majors) = rest.split_once(", PostgreSQL ")?;
    let majors = majors.split(' ').map(|major| major.parse().ok()).collect::<Option<_>>()?;
    let seen = Observation { steps: Vec::new(), error: None, end: End::Success, says: None, left: Vec::new() };
    Some(Recorded { case: case.to_owned(), version: version.to_owned(), majors, seen })
}

fn read_line(line: &str, seen: &mut Observation) -> Option<()> {
    let (key, rest) = line.split_once(' ')?;
    match key {
        "step" => {
            let fields: Vec<&str> = rest.splitn(7, ' ').collect();
            let number = |at: usize| fields.get(at)?.parse().ok();
            seen.steps.push(Step {
                session: number(0)?,
                transaction: number(1)?,
                message: number(2)?,
                protocol: if *fields.get(3)? == "simple" { Protocol::Simple } else { Protocol::Extended },
                lock_timeout: fields.get(4)?.parse().ok()?,
                file: (*fields.get(5)?).to_owned(),
                object: (*fields.get(6)?).to_owned(),
            });
        }
        "error" => seen.error = Some(rest.to_owned()),
        "end" => {
            seen.end = match rest {
                "success" => End::Success,
                "failure" => End::Failure,
                "never" => End::Never,
                _ => return None,
            };
        }
        "says" => seen.says = Some(rest.to_owned()),
        "left" => seen.left.push(rest.to_owned()),
        _ => return None,
    }
    Some(())
}

/// Puts together what is the same on several majors.
pub(super) fn merge(recorded: Vec<Recorded>) -> Vec<Recorded> {
    let mut merged: Vec<Recorded> = Vec::new();
    for one in recorded {
        let same =
            |known: &&mut Recorded| known.case == one.case && known.version == one.version && known.seen == one.seen;
        match merged.iter_mut().find(same) {
            Some(known) => known.majors.extend(one.majors),
            None => merged.push(one),
        }
    }
    merged
}

/// Numbers things from 1 in the order in which they first appear.
#[derive(Debug, Default)]
pub(super) struct Numbers(Vec<String>);

impl Numbers {
    pub(super) fn of(&mut self, name: &str) -> usize {
        let known = self.0.iter().position(|known| known == name);
        known.unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let step = Step {
            file: "1_a.sql".to_owned(),
            object: "table public.t_a".to_owned(),
            session: 1,
            transaction: 2,
            message: 3,
            protocol: Protocol::Extended,
            lock_timeout: 1234,
        };
        let seen = Observation {
            steps: vec![step],
            error: Some("25001".to_owned()),
            end: End::Never,
            says: Some("no".to_owned()),
            left: vec!["table public.t_a".to_owned()],
        };
        let one = |major| Recorded {
            case: "a".to_owned(),
            version: "1.0".to_owned(),
            majors: vec![major],
            seen: seen.clone(),
        };
        let merged = merge(vec![one(14), one(18)]);
        let read = read(&write(&merged)).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].majors.as_slice(), &read[0].seen), (&[14, 18][..], &seen));
    }
}
