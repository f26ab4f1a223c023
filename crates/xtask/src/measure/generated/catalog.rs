//! The catalog after a sequence: as the server has it, and as the model has it, one line for each object.

use pgvet_model::builtin;
use pgvet_model::catalog::{
    Catalog, Column, Constraint, ConstraintKind, IdentityKind, Index, Oid, Relation, RelationKind, SqlType,
    TEMPORARY_SCHEMA, TypeKind,
};
use pgvet_model::expression::format_builtin;
use pgvet_syntax::ast::{Firing, Persistence, ReferentialAction, ReplicaIdentity};
use pgvet_syntax::lexer::quote_identifier;
use smol_str::SmolStr;
use std::collections::BTreeSet;

/// One column, one line for each object. Columns that only some majors have are read through `to_jsonb`. The triggers of a
/// partition that come from its parent's are internal before 15. The objects of a foreign key to a partitioned table
/// for each of its partitions are omitted: the model knows the foreign key as a whole.
pub(super) const CATALOG_SQL: &str = "\
WITH r AS (
  SELECT c.*, format('%s.%s', n.nspname, c.relname) AS full_name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  WHERE n.nspname IN ('public', 'app') AND c.relkind IN ('r', 'p', 'v', 'm', 'S', 'i', 'I')
), a AS (
  SELECT attrelid, attnum, attname, row_number() OVER (PARTITION BY attrelid ORDER BY attnum) AS place
  FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped
)
SELECT concat_ws(' ', 'relation', full_name, relkind, relpersistence,
    CASE WHEN relrowsecurity THEN 'secured' END, CASE WHEN relforcerowsecurity THEN 'forced' END,
    CASE WHEN relkind IN ('r', 'p', 'm') THEN 'identity ' || relreplident::text END) FROM r
UNION ALL
SELECT concat_ws(' ', 'column', full_name, a.place, a.attname, format_type(t.atttypid, t.atttypmod),
    CASE WHEN t.attnotnull THEN 'not null' END, CASE WHEN t.atthasdef THEN 'default' END,
    CASE t.attidentity WHEN 'a' THEN 'always' WHEN 'd' THEN 'by default' END,
    CASE t.attgenerated WHEN 's' THEN 'stored' WHEN 'v' THEN 'virtual' END,
    CASE WHEN NOT t.attislocal THEN 'not local' END, NULLIF(t.attinhcount, 0))
  FROM r JOIN a ON a.attrelid = r.oid JOIN pg_attribute t ON t.attrelid = a.attrelid AND t.attnum = a.attnum
  WHERE relkind IN ('r', 'p', 'v', 'm')
UNION ALL
SELECT concat_ws(' ', 'constraint', full_name, conname, contype,
    CASE WHEN contype <> 'x' AND contype <> 'c' THEN (SELECT format('(%s)', string_agg(attname, ', ' ORDER BY k.n)) FROM
      unnest(conkey) WITH ORDINALITY AS k(num, n) JOIN a ON a.attrelid = conrelid AND a.attnum = k.num) END,
    CASE WHEN confrelid <> 0 THEN (SELECT format('references %s(%s) %s%s%s', f.full_name, string_agg(attname, ', ' ORDER BY k.n),
        confmatchtype, confdeltype, confupdtype) FROM r f,
      unnest(confkey) WITH ORDINALITY AS k(num, n) JOIN a ON a.attrelid = confrelid AND a.attnum = k.num
      WHERE f.oid = confrelid GROUP BY f.full_name) END,
    (SELECT format('set (%s)', string_agg(attname, ', ' ORDER BY k.n)) FROM
      jsonb_array_elements_text(NULLIF(to_jsonb(c) -> 'confdelsetcols', 'null')) WITH ORDINALITY AS k(num, n)
      JOIN a ON a.attrelid = conrelid AND a.attnum = k.num::int HAVING count(*) > 0),
    CASE WHEN conindid <> 0 AND contype <> 'f' THEN (SELECT 'index ' || relname FROM pg_class WHERE oid = conindid) END,
    CASE WHEN NOT convalidated THEN 'not valid' END, CASE WHEN condeferrable THEN 'deferrable' END,
    CASE WHEN condeferred THEN 'deferred' END, CASE WHEN NOT conislocal THEN 'not local' END, NULLIF(coninhcount, 0),
    CASE WHEN connoinherit AND contype IN ('c', 'n') THEN 'no inherit' END,
    CASE WHEN to_jsonb(c) ->> 'conenforced' = 'false' THEN 'not enforced' END)
  FROM r JOIN pg_constraint c ON c.conrelid = r.oid WHERE contype <> 't' AND relkind IN ('r', 'p')
    AND NOT EXISTS (SELECT FROM pg_constraint p WHERE p.oid = c.conparentid AND p.conrelid = c.conrelid)
UNION ALL
SELECT concat_ws(' ', 'index', full_name, 'of', (SELECT relname FROM pg_class WHERE oid = indrelid),
    (SELECT amname FROM pg_am WHERE oid = relam),
    (SELECT format('(%s)', string_agg(COALESCE(attname, '-'), ', ' ORDER BY k.n)) FROM
      unnest(indkey) WITH ORDINALITY AS k(num, n) LEFT JOIN a ON a.attrelid = indrelid AND a.attnum = k.num),
    CASE WHEN indisunique THEN 'unique' END, CASE WHEN indisprimary THEN 'primary' END,
    CASE WHEN indisexclusion THEN 'exclusion' END, CASE WHEN NOT indisvalid THEN 'invalid' END,
    CASE WHEN indpred IS NOT NULL THEN 'partial' END, CASE WHEN indisclustered THEN 'clustered' END,
    (SELECT 'part of ' || p.full_name FROM pg_inherits JOIN r p ON p.oid = inhparent WHERE inhrelid = r.oid))
  FROM r JOIN pg_index i ON i.indexrelid = r.oid
UNION ALL
SELECT concat_ws(' ', 'child', r.full_name, 'of', p.full_name) FROM pg_inherits JOIN r ON r.oid = inhrelid
  JOIN r p ON p.oid = inhparent WHERE r.relkind IN ('r', 'p')
UNION ALL
SELECT concat_ws(' ', 'sequence', r.full_name, CASE deptype WHEN 'i' THEN 'identity of' ELSE 'owned by' END,
    o.full_name || '.' || attname)
  FROM r LEFT JOIN (pg_depend d JOIN a ON attrelid = refobjid AND attnum = refobjsubid JOIN r o ON o.oid = refobjid)
    ON d.classid = 'pg_class'::regclass AND d.objid = r.oid AND d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass
  WHERE r.relkind = 'S'
UNION ALL
SELECT concat_ws(' ', 'trigger', full_name, tgname, NULLIF(tgenabled, 'O'))
  FROM r JOIN pg_trigger t ON t.tgrelid = r.oid LEFT JOIN pg_constraint k ON k.oid = tgconstraint
  WHERE NOT tgisinternal OR (tgparentid <> 0 AND COALESCE(k.contype = 't', true))
UNION ALL
SELECT concat_ws(' ', 'policy', full_name, polname) FROM r JOIN pg_policy ON polrelid = r.oid
UNION ALL
SELECT concat_ws(' ', 'rule', full_name, rulename) FROM r JOIN pg_rewrite ON ev_class = r.oid WHERE rulename <> '_RETURN'
UNION ALL
SELECT concat_ws(' ', 'type', format('%s.%s', nspname, typname), typtype,
    (SELECT string_agg(enumlabel, ',' ORDER BY enumsortorder) FROM pg_enum WHERE enumtypid = t.oid),
    NULLIF(format_type(typbasetype, typtypmod), '-'), CASE WHEN typnotnull THEN 'not null' END,
    (SELECT string_agg(conname || CASE WHEN convalidated THEN '' ELSE ' not valid' END, ',' ORDER BY conname COLLATE \"C\")
      FROM pg_constraint WHERE contypid = t.oid AND contype = 'c'))
  FROM pg_type t JOIN pg_namespace n ON n.oid = typnamespace WHERE nspname IN ('public', 'app') AND typtype IN ('e', 'd')
UNION ALL
SELECT concat_ws(' ', 'publication', pubname, CASE WHEN puballtables THEN 'all' END,
    (SELECT string_agg(full_name, ', ' ORDER BY full_name) FROM pg_publication_rel JOIN r ON r.oid = prrelid
      WHERE prpubid = p.oid),
    CASE WHEN NOT pubupdate THEN 'no update' END, CASE WHEN NOT pubdelete THEN 'no delete' END) FROM pg_publication p
UNION ALL
SELECT concat_ws(' ', 'statistics', format('%s.%s', nspname, stxname), 'of', full_name)
  FROM pg_statistic_ext JOIN pg_namespace n ON n.oid = stxnamespace JOIN r ON r.oid = stxrelid";

/// The same lines for the catalog of the model, after the end of its session.
pub(super) fn lines(catalog: &Catalog, major: u8) -> BTreeSet<String> {
    let mut model = Model { catalog, major, lines: BTreeSet::new() };
    for relation in catalog.relations().filter(|relation| relation.schema != TEMPORARY_SCHEMA) {
        model.relation(relation);
    }
    model.types();
    model.publications();
    model.lines
}

struct Model<'a> {
    catalog: &'a Catalog,
    major: u8,
    lines: BTreeSet<String>,
}

/// Joins what is there with blanks.
macro_rules! line {
    ($model:ident, $($part:expr),+ $(,)?) => {{
        let parts: Vec<Option<String>> = vec![$($part.into_part()),+];
        $model.lines.insert(parts.into_iter().flatten().collect::<Vec<_>>().join(" "));
    }};
}

/// A part of a line, which may be missing.
trait Part {
    fn into_part(self) -> Option<String>;
}

impl Part for &str {
    fn into_part(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Part for String {
    fn into_part(self) -> Option<String> {
        Some(self)
    }
}

impl Part for Option<String> {
    fn into_part(self) -> Option<String> {
        self
    }
}

fn if_so(condition: bool, text: &str) -> Option<String> {
    condition.then(|| text.to_owned())
}

fn number(count: u16) -> Option<String> {
    (count > 0).then(|| count.to_string())
}

fn full_name(relation: &Relation) -> String {
    format!("{}.{}", relation.schema, relation.name)
}

fn relkind(kind: RelationKind) -> Option<char> {
    "rpvmSiI".chars().find(|letter| RelationKind::of_relkind(*letter) == Some(kind))
}

impl Model<'_> {
    fn relation(&mut self, relation: &Relation) {
        let (Some(kind), name) = (relkind(relation.kind), full_name(relation)) else { return };
        let persistence = match relation.persistence {
            Persistence::Permanent => "p",
            Persistence::Unlogged => "u",
            Persistence::Temporary => "t",
        };
        let replica_identity = match relation.replica_identity {
            ReplicaIdentity::Default => "identity d",
            ReplicaIdentity::Full => "identity f",
            ReplicaIdentity::Nothing => "identity n",
            ReplicaIdentity::Index(_) => "identity i",
        };
        line!(
            self,
            "relation",
            name.as_str(),
            kind.to_string(),
            persistence,
            if_so(relation.row_security, "secured"),
            if_so(relation.force_row_security, "forced"),
            if_so(matches!(kind, 'r' | 'p' | 'm'), replica_identity),
        );
        match kind {
            'i' | 'I' => self.index(relation),
            'S' => self.sequence(relation),
            _ => self.columns(relation),
        }
        self.parts(relation);
    }

    fn columns(&mut self, relation: &Relation) {
        let name = full_name(relation);
        for (place, column) in (1..).zip(&relation.columns) {
            let Column { sql_type, not_null, default, identity, generated, is_local, inherited_from, .. } = column;
            let identity = identity.map(|kind| match kind {
                IdentityKind::Always => "always".to_owned(),
                IdentityKind::ByDefault => "by default".to_owned(),
            });
            let stored = generated.as_ref().map(|one| if one.stored { "stored" } else { "virtual" }.to_owned());
            line!(
                self,
                "column",
                name.as_str(),
                format!("{place} {} {}", column.name, self.type_name(*sql_type)),
                if_so(*not_null, "not null"),
                if_so(default.is_some() || generated.is_some(), "default"),
                identity,
                stored,
                if_so(!is_local, "not local"),
                number(*inherited_from),
            );
        }
        for constraint in &relation.constraints {
            self.constraint(relation, constraint);
        }
    }

    fn constraint(&mut self, relation: &Relation, constraint: &Constraint) {
        let letter = match &constraint.kind {
            ConstraintKind::NotNull { .. } if self.major < 18 => return,
            ConstraintKind::NotNull { .. } => "n",
            ConstraintKind::Check { .. } => "c",
            ConstraintKind::PrimaryKey { .. } => "p",
            ConstraintKind::Unique { .. } => "u",
            ConstraintKind::Exclude { .. } => "x",
            ConstraintKind::ForeignKey(_) => "f",
        };
        let listed = !matches!(letter, "x" | "c");
        let references = constraint.foreign_key().map(|key| {
            let action = |action: ReferentialAction| match action {
                ReferentialAction::NoAction => 'a',
                ReferentialAction::Restrict => 'r',
                ReferentialAction::Cascade => 'c',
                ReferentialAction::SetNull => 'n',
                ReferentialAction::SetDefault => 'd',
            };
            let (columns, table) = (key.referenced_columns.join(", "), self.name_of(key.referenced));
            let matches = if key.match_full { 'f' } else { 's' };
            format!("references {table}({columns}) {matches}{}{}", action(key.on_delete), action(key.on_update))
        });
        let set = constraint.foreign_key().map(|key| &key.set_columns).filter(|columns| !columns.is_empty());
        let index = constraint.index().and_then(|oid| self.catalog.get_relation(oid));
        line!(
            self,
            "constraint",
            full_name(relation),
            constraint.name.as_str(),
            letter,
            listed.then(|| format!("({})", constraint.columns().join(", "))),
            references,
            set.map(|columns| format!("set ({})", columns.join(", "))),
            index.map(|index| format!("index {}", index.name)),
            if_so(!constraint.valid, "not valid"),
            if_so(constraint.deferrable, "deferrable"),
            if_so(constraint.initially_deferred, "deferred"),
            if_so(!constraint.is_local, "not local"),
            number(constraint.inherited_from),
            if_so(constraint.no_inherit && matches!(letter, "c" | "n"), "no inherit"),
            if_so(!constraint.enforced, "not enforced"),
        );
    }

    fn name_of(&self, oid: Oid) -> String {
        self.catalog.get_relation(oid).map_or_else(|| "nothing".to_owned(), |relation| full_name(relation))
    }

    fn index(&mut self, relation: &Relation) {
        let Some(index) = relation.index() else { return };
        let Index { unique, primary, exclusion, valid, method, clustered, .. } = &**index;
        let keys = index.elements.iter().map(|element| element.key.as_column().map_or("-", |column| column.as_str()));
        let keys: Vec<&str> = keys.chain(index.including.iter().map(SmolStr::as_str)).collect();
        let table = self.catalog.get_relation(index.table).map_or("nothing", |table| table.name.as_str());
        line!(
            self,
            "index",
            full_name(relation),
            format!("of {table} {method} ({})", keys.join(", ")),
            if_so(*unique, "unique"),
            if_so(*primary, "primary"),
            if_so(*exclusion, "exclusion"),
            if_so(!valid, "invalid"),
            if_so(index.predicate.is_some(), "partial"),
            if_so(*clustered, "clustered"),
            index.parent.map(|parent| format!("part of {}", self.name_of(parent))),
        );
    }

    fn sequence(&mut self, relation: &Relation) {
        let Some(sequence) = relation.sequence() else { return };
        let kind = if sequence.identity { "identity of" } else { "owned by" };
        let owner = sequence.owned_by.as_ref().map(|(table, column)| format!("{}.{column}", self.name_of(*table)));
        line!(self, "sequence", full_name(relation), kind, owner);
    }

    fn parts(&mut self, relation: &Relation) {
        let name = full_name(relation);
        for parent in &relation.parents {
            if !relation.kind.is_index() {
                line!(self, "child", name.as_str(), "of", self.name_of(*parent));
            }
        }
        for trigger in &relation.triggers {
            let firing = match trigger.firing {
                Firing::Enable => None,
                Firing::Disable => Some("D".to_owned()),
                Firing::EnableReplica => Some("R".to_owned()),
                Firing::EnableAlways => Some("A".to_owned()),
            };
            line!(self, "trigger", name.as_str(), trigger.name.as_str(), firing);
        }
        for policy in &relation.policies {
            line!(self, "policy", name.as_str(), policy.name.as_str());
        }
        for rule in &relation.rules {
            line!(self, "rule", name.as_str(), rule.as_str());
        }
        for (schema, statistics) in self.catalog.statistics_of(relation.oid) {
            line!(self, "statistics", format!("{schema}.{statistics}"), "of", name.as_str());
        }
    }

    fn publications(&mut self) {
        for publication in self.catalog.publications() {
            let mut tables: Vec<String> = publication.tables.iter().map(|(table, _)| self.name_of(*table)).collect();
            tables.sort();
            line!(
                self,
                "publication",
                publication.name.as_str(),
                if_so(publication.all_tables, "all"),
                if_so(!tables.is_empty(), &tables.join(", ")),
                if_so(!publication.updates, "no update"),
                if_so(!publication.deletes, "no delete"),
            );
        }
    }

    fn types(&mut self) {
        for definition in self.catalog.types().filter(|definition| definition.schema != TEMPORARY_SCHEMA) {
            let name = format!("{}.{}", definition.schema, definition.name);
            match &definition.kind {
                TypeKind::Enum { labels } => {
                    let labels: Vec<&str> = labels.iter().map(|label| label.label.as_str()).collect();
                    line!(self, "type", name, "e", labels.join(","));
                }
                TypeKind::Domain(domain) => {
                    let state = |valid: bool| if valid { "" } else { " not valid" };
                    let checks = domain.checks.iter().map(|check| format!("{}{}", check.name, state(check.valid)));
                    let mut checks: Vec<String> = checks.collect();
                    checks.sort();
                    let base = self.type_name(domain.base);
                    let listed = (!checks.is_empty()).then(|| checks.join(","));
                    line!(self, "type", name, "d", base, if_so(domain.not_null, "not null"), listed);
                }
                _ => {}
            }
        }
    }

    fn type_name(&self, sql_type: SqlType) -> String {
        if let Some(name) = format_builtin(sql_type.oid.0, sql_type.typmod) {
            return name;
        }
        if let Some(known) = builtin::type_by_oid(sql_type.oid.0) {
            return match known.name.strip_prefix('_') {
                Some(_) => {
                    format!("{}[]", self.type_name(SqlType { oid: Oid(known.element), typmod: sql_type.typmod }))
                }
                None => quote_identifier(known.name),
            };
        }
        let Some(own) = self.catalog.get_type(sql_type.oid) else { return "unknown".to_owned() };
        match own.kind {
            TypeKind::Array { element } => format!("{}[]", self.type_name(SqlType::new(element))),
            _ => super::scene::qualified(&own.schema, &own.name),
        }
    }
}
