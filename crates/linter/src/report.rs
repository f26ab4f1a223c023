//! Collects findings: levels, sizes of tables, and the versions for which a finding holds.

pub(crate) mod places;

use self::places::Places;
use crate::assumption::Assumption;
use crate::cause::Cause;
use crate::confidence::Confidence;
use crate::diagnostic::{Diagnostic, Label};
use crate::fix::{Fix, Step};
use crate::meta::RuleMeta;
use crate::settings::Settings;
use crate::severity::Severity;
use pgvet_model::effect::{Evidence, FewRows, RelationName};
use pgvet_model::execute::{CodeKind, CodeText, InFile};
use pgvet_model::production::{TableSettings, TableSize};
use pgvet_model::routine::Hotness;
use pgvet_model::statistics::{describe, shown_time};
use pgvet_model::throughput::{Size, Work};
use pgvet_model::version::PgVersion;
use pgvet_syntax::plpgsql::HOLE;
use pgvet_syntax::source::TextRange;
use smol_str::SmolStr;

/// Collects the findings of one rule about one statement or migration.
#[derive(Debug)]
pub struct Reporter<'a> {
    settings: &'a Settings,
    meta: &'static RuleMeta,
    severity: Severity,
    file: u32,
    statement: TextRange,
    version: PgVersion,
    /// Whether ranges are offsets in code, which are still to be mapped to the file.
    in_code: bool,
    found: &'a mut Vec<Diagnostic>,
    places: Places,
}

/// Stands for the file in ranges that are offsets in code.
const CODE: u32 = u32::MAX;

impl<'a> Reporter<'a> {
    /// `None` where settings switch the rule off.
    pub(crate) fn new(
        settings: &'a Settings,
        meta: &'static RuleMeta,
        file: u32,
        statement: TextRange,
        version: PgVersion,
        found: &'a mut Vec<Diagnostic>,
    ) -> Option<Self> {
        let severity = settings.severity_in(file, meta)?;
        Some(Self::at(settings, meta, severity, file, statement, version, found))
    }

    /// For a rule whose severity in the file is known.
    pub(crate) fn at(
        settings: &'a Settings,
        meta: &'static RuleMeta,
        severity: Severity,
        file: u32,
        statement: TextRange,
        version: PgVersion,
        found: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self { settings, meta, severity, file, statement, version, in_code: false, found, places: Places::default() }
    }

    /// The ranges of findings are offsets in code: [`place_in_file`] moves them.
    pub(crate) fn in_code(self) -> Self {
        Self { in_code: true, ..self }
    }

    /// How many findings there are, of all rules.
    pub(crate) fn count(&self) -> usize {
        self.found.len()
    }

    /// Forgets the findings after the first `count`.
    pub(crate) fn truncate(&mut self, count: usize) {
        self.found.truncate(count);
        self.places.clear();
    }

    /// The statement that is examined.
    pub(crate) fn statement(&self) -> TextRange {
        self.statement
    }

    /// The same for a rule of the engine that cannot be switched off.
    pub(crate) fn of_rule(&mut self, meta: &'static RuleMeta) -> Reporter<'_> {
        Reporter {
            settings: self.settings,
            meta,
            severity: meta.severity,
            file: self.file,
            statement: self.statement,
            version: self.version,
            in_code: self.in_code,
            found: &mut *self.found,
            places: Places::default(),
        }
    }

    /// Reports a finding at a range. `message` is one sentence without period: object, lock, consequence.
    pub fn report(&mut self, range: TextRange, message: impl Into<String>) -> Finding<'_, 'a> {
        let diagnostic = Diagnostic {
            rule: self.meta.name,
            severity: self.severity,
            confidence: self.meta.confidence,
            assumptions: Vec::new(),
            message: message.into(),
            help: None,
            file: if self.in_code { CODE } else { self.file },
            range,
            statement: self.statement,
            labels: Vec::new(),
            relations: Vec::new(),
            pg_versions: vec![self.version],
            fixes: Vec::new(),
            steps: Vec::new(),
            obstacle: None,
            evidence: Evidence::Predicted,
            cause: None,
        };
        Finding { reporter: self, diagnostic, tables: Vec::new(), few: None, work: None, grows: false, ignored: true }
    }
}

/// A finding that is being described.
#[derive(Debug)]
#[must_use = "a finding is recorded by `emit`"]
pub struct Finding<'r, 'a> {
    reporter: &'r mut Reporter<'a>,
    diagnostic: Diagnostic,
    tables: Vec<(SmolStr, TableSettings)>,
    /// Evidence for few rows in the first of them.
    few: Option<FewRows>,
    work: Option<Work>,
    /// Whether the harm grows with the first relation.
    grows: bool,
    /// Whether all relations so far are to be ignored.
    ignored: bool,
}

impl Finding<'_, '_> {
    fn edit(mut self, change: impl FnOnce(&mut Diagnostic)) -> Self {
        change(&mut self.diagnostic);
        self
    }

    /// The next step. Lines of SQL are indented by four spaces.
    pub fn help(self, help: impl Into<String>) -> Self {
        self.edit(|diagnostic| diagnostic.help = Some(help.into()))
    }

    /// Another place that explains it, in the same file.
    pub fn label(self, range: TextRange, message: impl Into<String>) -> Self {
        self.edit(|diagnostic| {
            let file = diagnostic.file;
            diagnostic.labels.push(Label { file, range, message: message.into() });
        })
    }

    /// Another place that explains it, in any file of the run.
    pub fn label_in(self, file: u32, range: TextRange, message: impl Into<String>) -> Self {
        self.edit(|diagnostic| diagnostic.labels.push(Label { file, range, message: message.into() }))
    }

    /// Says why a function runs often, as labels in the files that show it.
    pub fn runs_often(mut self, hotness: &Hotness) -> Self {
        for reason in &hotness.reasons {
            if let Some(place) = reason.place {
                self = self.label_in(place.file, place.range, reason.text.clone());
            }
        }
        self
    }

    /// A relation of the finding. Where all are declared small the finding is worth a note only, and a large one makes
    /// a warning an error, if the harm grows with tables.
    pub fn relation(mut self, relation: &RelationName) -> Self {
        let table = self.reporter.settings.table(&relation.schema, &relation.name);
        if self.tables.is_empty() {
            let application = &self.reporter.settings.application;
            let is_listed = matches!(relation.few, Some(FewRows::Listed { .. }));
            if !(is_listed && application.inserts_into(&relation.schema, &relation.name)) {
                self.few.clone_from(&relation.few);
            }
        }
        self.tables.push((relation.name.clone(), table));
        self.ignored &= table.ignore;
        let unseen = relation.unseen_part.clone().map(|object| Assumption::DropsUnseen { object });
        let unseen = unseen.filter(|unseen| !self.diagnostic.assumptions.contains(unseen));
        self.assuming(unseen).edit(|diagnostic| diagnostic.relations.push(relation.to_string()))
    }

    /// Less (or more) severe than the rule is as a whole; configuration of the rule's level wins.
    pub fn severity(self, severity: Severity) -> Self {
        let configured = self.reporter.settings.is_configured(self.reporter.file, self.reporter.meta);
        self.edit(|diagnostic| {
            if !configured {
                diagnostic.severity = severity;
            }
        })
    }

    /// Adds an assumption, if there is one, which limits the confidence of the finding.
    pub fn assuming(self, assumption: impl Into<Option<Assumption>>) -> Self {
        self.edit(|diagnostic| assumption.into().into_iter().for_each(|assumption| diagnostic.assume(assumption)))
    }

    /// Says what it follows from, if others follow from the same.
    pub fn caused_by(self, cause: impl Into<Option<Cause>>) -> Self {
        self.edit(|diagnostic| diagnostic.cause = cause.into())
    }

    /// Sets the work that takes longer the larger the first relation is.
    pub fn work(mut self, work: Work) -> Self {
        (self.work, self.grows) = (Some(work), true);
        self
    }

    /// The harm grows with the first relation, although nothing estimates how long the work takes.
    pub fn grows(mut self) -> Self {
        self.grows = true;
        self
    }

    /// A fix, if there is one.
    pub fn fix(self, fix: impl Into<Option<Fix>>) -> Self {
        self.edit(|diagnostic| diagnostic.fixes.extend(fix.into()))
    }

    /// Sets the statements that can replace the whole statement.
    pub fn steps(self, steps: Vec<Step>) -> Self {
        self.edit(|diagnostic| diagnostic.steps = steps)
    }

    /// Why nothing can.
    pub fn obstacle(self, obstacle: Option<String>) -> Self {
        self.edit(|diagnostic| diagnostic.obstacle = obstacle)
    }
}

impl Finding<'_, '_> {
    /// Returns the statistics of the tables, and how long the work takes with the first.
    fn sizes(&self) -> Vec<String> {
        let throughput = self.reporter.settings.throughput;
        let referenced_rows = self.tables.iter().skip(1).filter_map(|(_, table)| table.rows).max();
        let mut sizes: Vec<String> = Vec::new();
        for (at, (name, table)) in self.tables.iter().enumerate() {
            let Some(mut text) = describe(table).map(|size| format!("`{name}`: {size}")) else { continue };
            if let (0, Some(work), Some(size)) = (at, self.work, Size::of(table, referenced_rows)) {
                text = format!("{text}; the work takes {}", shown_time(throughput.time(work, size).as_secs()));
            }
            if !sizes.contains(&text) {
                sizes.push(text);
            }
        }
        sizes
    }
}

impl Finding<'_, '_> {
    /// Lowers the severity where all tables are known to be small, and raises it where one is known to be large. A
    /// configured level wins.
    fn weigh_sizes(&mut self) {
        let configured = self.reporter.settings.is_configured(self.reporter.file, self.reporter.meta);
        if configured || self.tables.is_empty() || !self.reporter.meta.category.grows_with_tables() {
            return;
        }
        let mut sizes = self.tables.iter().map(|(_, table)| table.size());
        if sizes.clone().all(|size| size == TableSize::Small) {
            self.diagnostic.severity = Severity::Info;
        } else if sizes.any(|size| size == TableSize::Large) && self.diagnostic.severity == Severity::Warning {
            self.diagnostic.severity = Severity::Error;
        }
    }

    /// Work that takes the longer the larger a table is does harm if the table is large, and a lock if somebody waits for
    /// it. Configuration and statistics may say so.
    fn assume_usual(&mut self) {
        let meta = self.reporter.meta;
        let is_known_large = self.tables.iter().any(|(_, table)| table.size() == TableSize::Large);
        let Some((table, _)) = self.tables.first().filter(|_| !is_known_large) else { return };
        let table = table.clone();
        let is_usual = meta.category.grows_with_tables() && meta.confidence == Confidence::Certain;
        if let Some(because) = self.few.clone().filter(|_| self.grows) {
            self.diagnostic.assume(Assumption::LargeThough { table, because });
        } else if is_usual && self.diagnostic.assumptions.iter().all(Assumption::is_about_transaction) {
            let usual = match self.few {
                _ if self.work.is_some() => Assumption::Large { table },
                Some(FewRows::FoundEmpty) => Assumption::InUseThoughEmpty { table },
                _ => Assumption::InUse { table },
            };
            self.diagnostic.assume(usual);
        }
    }
}

impl Finding<'_, '_> {
    /// Records the finding, unless the configuration ignores all its relations.
    pub fn emit(mut self) {
        if self.ignored && !self.tables.is_empty() {
            return;
        }
        // Work on no rows takes no time.
        if self.grows && self.few == Some(FewRows::Truncated) {
            return;
        }
        self.weigh_sizes();
        self.assume_usual();
        let sizes = self.sizes();
        let Self { reporter, mut diagnostic, .. } = self;
        let (file, range) = (diagnostic.file, diagnostic.range);
        diagnostic.labels.extend(sizes.into_iter().map(|message| Label { file, range, message }));
        let labels = diagnostic.labels.iter_mut().map(|label| &mut label.message);
        if diagnostic.message.contains(HOLE) {
            diagnostic.message += " (`…` is known only at run time)";
        }
        for text in labels.chain([&mut diagnostic.message]).chain(&mut diagnostic.help) {
            show_holes(text);
        }
        reporter.places.record(reporter.found, diagnostic);
    }
}

/// Shows the part of a name known only at run time as what it is: `events_…`.
fn show_holes(text: &mut String) {
    if text.contains(HOLE) {
        *text = text.replace(HOLE, "…");
    }
}

/// Moves what was found in code to where the file shows it. Only text that the file contains literally can be edited,
/// and no statements can replace one inside of code.
pub(crate) fn place_in_file(diagnostic: &mut Diagnostic, file: u32, code: &CodeText) {
    if diagnostic.file != CODE {
        return;
    }
    let inner = diagnostic.range;
    diagnostic.file = file;
    diagnostic.range = code.shown.range(inner);
    for label in diagnostic.labels.iter_mut().filter(|label| label.file == CODE) {
        (label.file, label.range) = (file, code.shown.range(label.range));
    }
    if let CodeKind::Function(Some(function)) = &code.kind {
        let message = format!("in {}, which this statement runs", function.name);
        diagnostic.labels.push(Label { file: function.file, range: inner.shifted(function.start), message });
    }
    diagnostic.steps.clear();
    diagnostic.obstacle = None;
    match code.shown {
        InFile::Shifted(by) => {
            let is_quoted = code.kind == CodeKind::Text;
            diagnostic.fixes.retain(|fix| !(is_quoted && fix.edits.iter().any(|edit| edit.text.contains(['\'', '$']))));
            let edits = diagnostic.fixes.iter_mut().flat_map(|fix| &mut fix.edits);
            edits.for_each(|edit| edit.range = edit.range.shifted(by));
        }
        InFile::At(_) => diagnostic.fixes.clear(),
    }
}
