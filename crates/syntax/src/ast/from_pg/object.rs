//! Views, sequences, types, domains, policies, publications, schemas and extensions.

use super::constraint::constraint_node;
use super::context::{Context, Span, exact, string, strings, written};
use super::name::{behavior, def_elem, persistence, role, roles};
use crate::ast::{
    AlterDomain, AlterDomainAction, AlterEnum, AlterPolicy, AlterPublication, AlterSequence, Constraint,
    ConstraintKind, CreateDomain, CreateExtension, CreatePolicy, CreatePublication, CreateSchema, CreateSequence,
    CreateType, CreateTypeKind, CreateView, DefElem, DefValue, PublicationAction, PublicationObject,
    RefreshMaterializedView,
};
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;
use std::sync::Arc;

impl Context<'_> {
    pub(super) fn create_view(&self, view: &pg::ViewStmt, span: Span) -> Option<CreateView> {
        let relation = view.view;
        let name = self.required_relation(relation);
        let name_range = name.range();
        let after_name = span.from(self.index_after(name_range));
        let body = self.query_after_as(after_name, &["CHECK", "CASCADED", "LOCAL"]);
        let mut options = self.options(view.options);
        // WITH CHECK OPTION is an option for PostgreSQL, too (`DefineView`).
        if view.with_check_option != pg::ViewCheckOption::NO_CHECK_OPTION {
            let name = SmolStr::new_static("check_option");
            options.push(DefElem { namespace: None, name, value: DefValue::None, range: name_range });
        }
        Some(CreateView {
            columns: self.names(after_name, view.aliases),
            persistence: persistence(relation.map_or("", |relation| &relation.relpersistence)),
            or_replace: view.replace,
            query: Arc::new(self.select(view.query?, body)?),
            text: self.source_of(body).into(),
            options,
            name,
        })
    }

    pub(super) fn refresh(&self, refresh: &pg::RefreshMatViewStmt, span: Span) -> RefreshMaterializedView {
        RefreshMaterializedView {
            name: self.required_relation(refresh.relation),
            concurrently: refresh.concurrent,
            with_data: !refresh.skip_data,
            keyword: self.range(span.to((span.start + 3).min(span.end))),
        }
    }

    pub(super) fn create_sequence(&self, create: &pg::CreateSeqStmt) -> CreateSequence {
        let relation = create.sequence;
        CreateSequence {
            name: self.required_relation(relation),
            persistence: persistence(relation.map_or("", |relation| &relation.relpersistence)),
            if_not_exists: create.if_not_exists,
            options: self.options(create.options),
        }
    }

    pub(super) fn alter_sequence(&self, alter: &pg::AlterSeqStmt) -> AlterSequence {
        AlterSequence {
            name: self.required_relation(alter.sequence),
            if_exists: alter.missing_ok,
            options: self.options(alter.options),
        }
    }

    pub(super) fn composite_type(&self, create: &pg::CompositeTypeStmt) -> CreateType {
        let columns = create.coldeflist.iter().filter_map(|node| match node.node() {
            Node::ColumnDef(column) => Some(self.column_def(column)),
            _ => None,
        });
        CreateType { name: self.required_relation(create.typevar), kind: CreateTypeKind::Composite(exact(columns)) }
    }

    /// CREATE TYPE of the other kinds; the name is after two words.
    pub(super) fn create_type(&self, name: pg::List<'_>, kind: CreateTypeKind, span: Span) -> CreateType {
        CreateType { name: self.object_name_of(name, span.start + 2), kind }
    }

    pub(super) fn create_domain(&self, create: &pg::CreateDomainStmt, span: Span) -> CreateDomain {
        let collate = create.coll_clause.map(|collate| collate.location);
        CreateDomain {
            name: self.object_name_of(create.domainname, span.start + 2),
            base: self.required_type(create.type_name),
            constraints: self.constraint_list(create.constraints, collate, span),
        }
    }

    /// The letters of `subtype`: PostgreSQL 18 `src/include/nodes/parsenodes.h`, `AlterDomainStmt`.
    pub(super) fn alter_domain(&self, alter: &pg::AlterDomainStmt, span: Span) -> Option<AlterDomain> {
        let name = self.object_name_of(alter.type_name, span.start + 2);
        let after = span.from(self.index_after(name.range()));
        let named = || {
            let word = self.find_word(after, &["CONSTRAINT"]).map_or(after.start, |at| at + 1);
            self.name(span.from(self.skip(word, &["IF", "EXISTS"])), &alter.name)
        };
        let action = match (&*alter.subtype, alter.def) {
            ("T", Some(default)) => AlterDomainAction::SetDefault(self.expression(default)),
            ("T", None) => AlterDomainAction::DropDefault,
            ("N", _) => AlterDomainAction::DropNotNull,
            ("O", _) => AlterDomainAction::SetNotNull,
            ("C", Some(node)) => AlterDomainAction::AddConstraint(self.domain_constraint(constraint_node(node)?)),
            ("X", _) => AlterDomainAction::DropConstraint {
                name: named(),
                if_exists: alter.missing_ok,
                behavior: behavior(alter.behavior),
            },
            ("V", _) => AlterDomainAction::ValidateConstraint { name: named() },
            _ => return None,
        };
        Some(AlterDomain { name, action })
    }

    /// NOT NULL of a domain has a key that nobody wrote.
    fn domain_constraint(&self, node: &pg::Constraint) -> Constraint {
        let mut constraint = self.table_constraint(node);
        if let ConstraintKind::NotNull { column } = &mut constraint.kind {
            *column = None;
        }
        constraint
    }

    pub(super) fn alter_enum(&self, alter: &pg::AlterEnumStmt, span: Span) -> AlterEnum {
        AlterEnum {
            name: self.object_name_of(alter.type_name, span.start + 2),
            renamed: written(&alter.old_val),
            value: alter.new_val.as_str().into(),
            if_not_exists: alter.skip_if_new_val_exists,
            neighbour: written(&alter.new_val_neighbor).map(|label| (label, alter.new_val_is_after)),
        }
    }

    pub(super) fn create_policy(&self, create: &pg::CreatePolicyStmt, span: Span) -> CreatePolicy {
        CreatePolicy {
            name: self.name_at(span.start + 2, &create.policy_name),
            table: self.required_relation(create.table),
            command: create.cmd_name.as_str().into(),
            permissive: create.permissive,
            roles: roles(create.roles),
            using: self.optional(create.qual),
            check: self.optional(create.with_check),
        }
    }

    pub(super) fn alter_policy(&self, alter: &pg::AlterPolicyStmt, span: Span) -> AlterPolicy {
        AlterPolicy {
            name: self.name_at(span.start + 2, &alter.policy_name),
            table: self.required_relation(alter.table),
            roles: roles(alter.roles),
            using: self.optional(alter.qual),
            check: self.optional(alter.with_check),
        }
    }

    pub(super) fn create_publication(&self, create: &pg::CreatePublicationStmt, span: Span) -> CreatePublication {
        CreatePublication {
            name: self.name_at(span.start + 2, &create.pubname),
            all_tables: create.for_all_tables,
            objects: self.publication_objects(create.pubobjects),
            options: self.options(create.options),
        }
    }

    pub(super) fn alter_publication(&self, alter: &pg::AlterPublicationStmt, span: Span) -> AlterPublication {
        use pg::AlterPublicationAction as Action;
        // With options and no objects PostgreSQL leaves the action at its first value.
        let action = match alter.action {
            _ if !alter.options.is_empty() => PublicationAction::Set,
            Action::AP_ADD_OBJECTS => PublicationAction::Add,
            Action::AP_DROP_OBJECTS => PublicationAction::Drop,
            _ => PublicationAction::Set,
        };
        AlterPublication {
            name: self.name_at(span.start + 2, &alter.pubname),
            action,
            objects: self.publication_objects(alter.pubobjects),
            options: self.options(alter.options),
        }
    }

    fn publication_objects(&self, nodes: pg::List<'_>) -> Vec<PublicationObject> {
        use pg::PublicationObjSpecType as Kind;
        let object = |node: pg::NodeRef<'_>| {
            let Node::PublicationObjSpec(object) = node.node() else { return None };
            Some(match object.pubobjtype {
                Kind::PUBLICATIONOBJ_TABLES_IN_SCHEMA => {
                    PublicationObject::Schema(Some(self.name_at(self.index(object.location)?, &object.name)))
                }
                Kind::PUBLICATIONOBJ_TABLES_IN_CUR_SCHEMA => PublicationObject::Schema(None),
                _ => self.publication_table(object.pubtable?)?,
            })
        };
        exact(nodes.iter().filter_map(object))
    }

    fn publication_table(&self, table: &pg::PublicationTable) -> Option<PublicationObject> {
        let relation = table.relation?;
        let name = self.relation(relation);
        let after = self.everything().from(self.index_after(name.range()));
        Some(PublicationObject::Table {
            only: !relation.inh,
            columns: self.names(after, table.columns),
            filter: self.optional(table.where_clause),
            table: name,
        })
    }

    pub(super) fn create_schema(&self, create: &pg::CreateSchemaStmt, span: Span) -> CreateSchema {
        let after = span.from(self.skip(span.start + 2, &["IF", "NOT", "EXISTS"]));
        // The elements follow without separators.
        let is_start =
            |at: usize| self.is(at, "CREATE") || (self.is(at, "GRANT") && !self.is(at.saturating_sub(1), "WITH"));
        let mut starts = Vec::new();
        let mut rest = after;
        while let Some(at) = self.find(rest, is_start) {
            starts.push(at);
            rest = span.from(at + 1);
        }
        let span_of = |at: usize| match starts.get(at) {
            Some(start) => Span::new(*start, starts.get(at + 1).copied().unwrap_or(span.end)),
            None => span,
        };
        let elements = create.schema_elts.iter().enumerate();
        CreateSchema {
            name: written(&create.schemaname).map(|name| self.name(after, &name)),
            authorization: create.authrole.map(role),
            if_not_exists: create.if_not_exists,
            elements: elements.map(|(at, node)| self.statement(node, span_of(at))).collect(),
        }
    }

    pub(super) fn create_extension(&self, create: &pg::CreateExtensionStmt, span: Span) -> CreateExtension {
        let after = span.from(self.skip(span.start + 2, &["IF", "NOT", "EXISTS"]));
        let option = |name: &str| create.options.iter().filter_map(def_elem).find(|element| element.defname == name);
        CreateExtension {
            name: self.name(after, &create.extname),
            if_not_exists: create.if_not_exists,
            schema: option("schema").and_then(|element| element.arg).and_then(string).map(Into::into),
            cascade: option("cascade").is_some(),
        }
    }

    pub(super) fn create_enum(&self, create: &pg::CreateEnumStmt, span: Span) -> CreateType {
        self.create_type(create.type_name, CreateTypeKind::Enum(strings(create.vals)), span)
    }
}
