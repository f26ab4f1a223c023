//! ALTER TABLE and the statements that share its grammar. Its commands have no location: the commas outside brackets
//! separate them, and the grammar makes exactly one node of each.

use super::context::{Context, Span, exact, string};
use super::drop::object_kind;
use super::name::{behavior, role};
use super::table::range_var;
use crate::ast::{
    AlterConstraint, AlterTable, AlterTableAction, AlterTableCommand, AlterTableMoveAll, Firing, Name, ReplicaIdentity,
    RowSecurity, TriggerChoice,
};
use pg::AlterTableType as Kind;
use pg::Node;
use pgvet_parser::tree as pg;

impl Context<'_> {
    pub(super) fn alter_table(&self, alter: &pg::AlterTableStmt, span: Span) -> AlterTable {
        let relation = alter.relation;
        let name = self.required_relation(relation);
        let mut start = self.index_after(name.range());
        // `ONLY (name)` and `name *`.
        while self.is_mark(start, b')') || self.text(start) == "*" {
            start += 1;
        }
        let parts = self.split(span.from(start), b',');
        let commands = alter.cmds.iter().enumerate().filter_map(|(at, node)| {
            let Node::AlterTableCmd(command) = node.node() else { return None };
            self.command(command, parts.get(at).copied().unwrap_or_else(|| span.from(start)))
        });
        AlterTable {
            kind: object_kind(alter.objtype),
            only: relation.is_some_and(|relation| !relation.inh),
            if_exists: alter.missing_ok,
            commands: exact(commands),
            cascade: alter.cmds.iter().any(|node| {
                matches!(node.node(), Node::AlterTableCmd(command)
                    if command.behavior == pg::DropBehavior::DROP_CASCADE)
            }),
            name,
        }
    }

    fn command(&self, command: &pg::AlterTableCmd, span: Span) -> Option<AlterTableCommand> {
        let (keyword, after) = self.command_keyword(command.subtype, span);
        let action = self.action(command, after, span)?;
        Some(AlterTableCommand { action, range: self.range(span), keyword: self.range(keyword) })
    }

    /// The keyword of a command, and where its name may stand.
    fn command_keyword(&self, kind: Kind, span: Span) -> (Span, Span) {
        if self.is(span.start, "ALTER") && !self.is(span.start + 1, "CONSTRAINT") {
            let column = self.skip_any(span.start + 1, &["COLUMN", "ATTRIBUTE"]);
            let action = span.from(column + 1);
            return (self.column_keyword(kind, action), span.from(column).to(column + 1));
        }
        let keyword = match last_keyword(kind) {
            Some(word) => self.through_word(span, &[word]),
            None => span.to(self.skip_any(span.start + 1, &["COLUMN", "ATTRIBUTE", "CONSTRAINT"])),
        };
        let mut name = self.skip(keyword.end, &["IF", "EXISTS"]);
        name = self.skip(name, &["IF", "NOT", "EXISTS"]);
        (keyword, span.from(name))
    }

    /// The words after `ALTER COLUMN name`.
    fn column_keyword(&self, kind: Kind, action: Span) -> Span {
        let words = match kind {
            Kind::AT_ALTER_COLUMN_TYPE => {
                let word = self.find_word(action, &["TYPE"]).unwrap_or(action.start);
                return action.to(self.type_end(word + 1));
            }
            Kind::AT_SET_NOT_NULL | Kind::AT_DROP_NOT_NULL => 3,
            Kind::AT_SET_OPTIONS
            | Kind::AT_RESET_OPTIONS
            | Kind::AT_ALTER_COLUMN_GENERIC_OPTIONS
            | Kind::AT_SET_IDENTITY => 1,
            _ => 2,
        };
        action.to((action.start + words).min(action.end))
    }

    fn action(&self, command: &pg::AlterTableCmd, name: Span, span: Span) -> Option<AlterTableAction> {
        use AlterTableAction as Action;
        let kind = command.subtype;
        let column = || self.name_at(name.start, &command.name);
        let def = command.def.map(pg::NodeRef::node);
        Some(match kind {
            Kind::AT_ADD_COLUMN => match def {
                Some(Node::ColumnDef(definition)) => {
                    Action::AddColumn { column: self.column_def(definition), if_not_exists: command.missing_ok }
                }
                _ => return None,
            },
            Kind::AT_DROP_COLUMN => Action::DropColumn {
                column: column(),
                if_exists: command.missing_ok,
                behavior: behavior(command.behavior),
            },
            Kind::AT_ALTER_COLUMN_TYPE => self.alter_type(command, column())?,
            Kind::AT_COLUMN_DEFAULT => match command.def {
                Some(default) => Action::SetDefault { column: column(), default: self.whole(Some(default)) },
                None => Action::DropDefault { column: column() },
            },
            Kind::AT_SET_NOT_NULL => Action::SetNotNull { column: column() },
            Kind::AT_DROP_NOT_NULL => Action::DropNotNull { column: column() },
            Kind::AT_SET_EXPRESSION => {
                Action::SetExpression { column: column(), expression: self.operand(command.def) }
            }
            Kind::AT_DROP_EXPRESSION => Action::DropExpression { column: column(), if_exists: command.missing_ok },
            Kind::AT_SET_STATISTICS => {
                Action::SetStatistics { column: (!command.name.is_empty()).then(column), number: command.num }
            }
            Kind::AT_SET_OPTIONS | Kind::AT_RESET_OPTIONS => Action::SetColumnOptions {
                column: column(),
                options: self.options(list(def)),
                reset: kind == Kind::AT_RESET_OPTIONS,
            },
            Kind::AT_SET_STORAGE => Action::SetStorage { column: column(), storage: text(command) },
            Kind::AT_SET_COMPRESSION => Action::SetCompression { column: column(), method: text(command) },
            Kind::AT_ADD_IDENTITY => match def {
                Some(Node::Constraint(identity)) => Action::AddIdentity {
                    column: column(),
                    always: identity.generated_when == "a",
                    options: self.options(identity.options),
                },
                _ => return None,
            },
            Kind::AT_SET_IDENTITY => Action::SetIdentity { column: column(), options: self.options(list(def)) },
            Kind::AT_DROP_IDENTITY => Action::DropIdentity { column: column(), if_exists: command.missing_ok },
            _ => return self.table_action(command, name, span),
        })
    }

    /// Commands that are not about one column.
    fn table_action(&self, command: &pg::AlterTableCmd, after: Span, span: Span) -> Option<AlterTableAction> {
        use AlterTableAction as Action;
        let name = || self.name(after, &command.name);
        let def = command.def;
        Some(match command.subtype {
            Kind::AT_ADD_CONSTRAINT => match def.and_then(super::constraint::constraint_node) {
                Some(constraint) => Action::AddConstraint(self.table_constraint(constraint)),
                None => return None,
            },
            Kind::AT_ALTER_CONSTRAINT => Action::AlterConstraint(self.alter_constraint(def?, after)?),
            Kind::AT_VALIDATE_CONSTRAINT => Action::ValidateConstraint { name: name() },
            Kind::AT_DROP_CONSTRAINT => Action::DropConstraint {
                name: name(),
                if_exists: command.missing_ok,
                behavior: behavior(command.behavior),
            },
            Kind::AT_CLUSTER_ON => Action::ClusterOn { index: name() },
            Kind::AT_DROP_CLUSTER => Action::SetWithoutCluster,
            Kind::AT_SET_LOGGED => Action::SetLogged,
            Kind::AT_SET_UN_LOGGED => Action::SetUnlogged,
            Kind::AT_DROP_OIDS => Action::SetWithoutOids,
            Kind::AT_SET_ACCESS_METHOD => Action::SetAccessMethod { method: (!command.name.is_empty()).then(name) },
            Kind::AT_SET_TABLE_SPACE => Action::SetTablespace { tablespace: name() },
            Kind::AT_SET_REL_OPTIONS => Action::SetOptions(self.options(list(def.map(pg::NodeRef::node)))),
            Kind::AT_RESET_REL_OPTIONS => Action::ResetOptions(self.options(list(def.map(pg::NodeRef::node)))),
            Kind::AT_ADD_INHERIT => Action::Inherit { parent: self.relation(range_var(def?)?) },
            Kind::AT_DROP_INHERIT => Action::NoInherit { parent: self.relation(range_var(def?)?) },
            Kind::AT_ADD_OF => match def?.node() {
                Node::TypeName(node) => Action::OfType { type_name: self.type_name(node) },
                _ => return None,
            },
            Kind::AT_DROP_OF => Action::NotOf,
            Kind::AT_CHANGE_OWNER => Action::ChangeOwner { role: command.newowner.map(role).unwrap_or_default() },
            Kind::AT_REPLICA_IDENTITY => Action::ReplicaIdentity(self.replica_identity(def?, span)?),
            Kind::AT_ENABLE_ROW_SECURITY => Action::RowSecurity(RowSecurity::Enable),
            Kind::AT_DISABLE_ROW_SECURITY => Action::RowSecurity(RowSecurity::Disable),
            Kind::AT_FORCE_ROW_SECURITY => Action::RowSecurity(RowSecurity::Force),
            Kind::AT_NO_FORCE_ROW_SECURITY => Action::RowSecurity(RowSecurity::NoForce),
            Kind::AT_GENERIC_OPTIONS | Kind::AT_ALTER_COLUMN_GENERIC_OPTIONS => Action::ForeignOptions,
            Kind::AT_ATTACH_PARTITION | Kind::AT_DETACH_PARTITION | Kind::AT_DETACH_PARTITION_FINALIZE => {
                self.partition_action(command)?
            }
            kind => firing_action(kind, name)?,
        })
    }

    fn alter_type(&self, command: &pg::AlterTableCmd, column: Name) -> Option<AlterTableAction> {
        let Some(Node::ColumnDef(definition)) = command.def.map(pg::NodeRef::node) else {
            return None;
        };
        Some(AlterTableAction::AlterColumnType {
            column,
            type_name: self.required_type(definition.type_name),
            collation: definition.coll_clause.and_then(|collate| self.collation(collate)),
            using: definition.raw_default.map(|using| self.whole(Some(using))),
        })
    }

    fn alter_constraint(&self, def: pg::NodeRef<'_>, after: Span) -> Option<AlterConstraint> {
        let Node::ATAlterConstraint(alter) = def.node() else { return None };
        Some(AlterConstraint {
            name: self.name(after, &alter.conname),
            deferrable: alter.alter_deferrability.then_some(alter.deferrable),
            initially_deferred: alter.initdeferred,
            enforced: alter.alter_enforceability.then_some(alter.is_enforced),
            no_inherit: alter.alter_inheritability.then_some(alter.noinherit),
        })
    }

    fn replica_identity(&self, def: pg::NodeRef<'_>, span: Span) -> Option<ReplicaIdentity> {
        let Node::ReplicaIdentityStmt(identity) = def.node() else { return None };
        Some(match &*identity.identity_type {
            "n" => ReplicaIdentity::Nothing,
            "f" => ReplicaIdentity::Full,
            "i" => {
                let after = self.find_word(span, &["INDEX"]).map_or(span.start, |at| at + 1);
                ReplicaIdentity::Index(self.name(span.from(after), &identity.name))
            }
            _ => ReplicaIdentity::Default,
        })
    }

    fn partition_action(&self, command: &pg::AlterTableCmd) -> Option<AlterTableAction> {
        let Some(Node::PartitionCmd(partition)) = command.def.map(pg::NodeRef::node) else {
            return None;
        };
        let name = self.required_relation(partition.name);
        Some(match command.subtype {
            Kind::AT_ATTACH_PARTITION => AlterTableAction::AttachPartition {
                partition: name,
                bound: partition.bound.map(|bound| self.partition_bound(bound)),
            },
            kind => AlterTableAction::DetachPartition {
                partition: name,
                concurrently: partition.concurrent,
                finalize: kind == Kind::AT_DETACH_PARTITION_FINALIZE,
            },
        })
    }
}

pub(super) fn alter_table_move_all(alter: &pg::AlterTableMoveAllStmt) -> AlterTableMoveAll {
    AlterTableMoveAll {
        kind: object_kind(alter.objtype),
        from: alter.orig_tablespacename.as_str().into(),
        to: alter.new_tablespacename.as_str().into(),
    }
}

/// The last word of a command's keyword, where it is not simply its first.
fn last_keyword(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::AT_VALIDATE_CONSTRAINT | Kind::AT_DROP_CONSTRAINT | Kind::AT_ALTER_CONSTRAINT => "CONSTRAINT",
        Kind::AT_CLUSTER_ON => "ON",
        Kind::AT_DROP_CLUSTER => "CLUSTER",
        Kind::AT_SET_LOGGED => "LOGGED",
        Kind::AT_SET_UN_LOGGED => "UNLOGGED",
        Kind::AT_DROP_OIDS => "OIDS",
        Kind::AT_SET_ACCESS_METHOD => "METHOD",
        Kind::AT_SET_TABLE_SPACE => "TABLESPACE",
        Kind::AT_ENABLE_TRIG
        | Kind::AT_ENABLE_ALWAYS_TRIG
        | Kind::AT_ENABLE_REPLICA_TRIG
        | Kind::AT_DISABLE_TRIG
        | Kind::AT_ENABLE_TRIG_ALL
        | Kind::AT_DISABLE_TRIG_ALL
        | Kind::AT_ENABLE_TRIG_USER
        | Kind::AT_DISABLE_TRIG_USER => "TRIGGER",
        Kind::AT_ENABLE_RULE | Kind::AT_ENABLE_ALWAYS_RULE | Kind::AT_ENABLE_REPLICA_RULE | Kind::AT_DISABLE_RULE => {
            "RULE"
        }
        Kind::AT_DROP_INHERIT => "INHERIT",
        Kind::AT_DROP_OF => "OF",
        Kind::AT_CHANGE_OWNER => "TO",
        Kind::AT_REPLICA_IDENTITY => "IDENTITY",
        Kind::AT_ENABLE_ROW_SECURITY
        | Kind::AT_DISABLE_ROW_SECURITY
        | Kind::AT_FORCE_ROW_SECURITY
        | Kind::AT_NO_FORCE_ROW_SECURITY => "SECURITY",
        Kind::AT_ATTACH_PARTITION | Kind::AT_DETACH_PARTITION | Kind::AT_DETACH_PARTITION_FINALIZE => "PARTITION",
        _ => return None,
    })
}

/// ENABLE and DISABLE of triggers and rules. `None` for what the grammar never makes.
fn firing_action(kind: Kind, name: impl Fn() -> Name) -> Option<AlterTableAction> {
    let trigger = |firing, which| AlterTableAction::Trigger { firing, which };
    let rule = |firing| AlterTableAction::Rule { firing, name: name() };
    Some(match kind {
        Kind::AT_ENABLE_TRIG => trigger(Firing::Enable, TriggerChoice::Named(name())),
        Kind::AT_ENABLE_ALWAYS_TRIG => trigger(Firing::EnableAlways, TriggerChoice::Named(name())),
        Kind::AT_ENABLE_REPLICA_TRIG => trigger(Firing::EnableReplica, TriggerChoice::Named(name())),
        Kind::AT_DISABLE_TRIG => trigger(Firing::Disable, TriggerChoice::Named(name())),
        Kind::AT_ENABLE_TRIG_ALL => trigger(Firing::Enable, TriggerChoice::All),
        Kind::AT_DISABLE_TRIG_ALL => trigger(Firing::Disable, TriggerChoice::All),
        Kind::AT_ENABLE_TRIG_USER => trigger(Firing::Enable, TriggerChoice::User),
        Kind::AT_DISABLE_TRIG_USER => trigger(Firing::Disable, TriggerChoice::User),
        Kind::AT_ENABLE_RULE => rule(Firing::Enable),
        Kind::AT_ENABLE_ALWAYS_RULE => rule(Firing::EnableAlways),
        Kind::AT_ENABLE_REPLICA_RULE => rule(Firing::EnableReplica),
        Kind::AT_DISABLE_RULE => rule(Firing::Disable),
        _ => return None,
    })
}

fn list(node: Option<Node<'_>>) -> pg::List<'_> {
    match node {
        Some(Node::List(list)) => list.items(),
        _ => pg::List::EMPTY,
    }
}

fn text(command: &pg::AlterTableCmd) -> smol_str::SmolStr {
    command.def.and_then(string).unwrap_or_default().into()
}
