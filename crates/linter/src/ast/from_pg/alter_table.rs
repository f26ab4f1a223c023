//! ALTER TABLE and the statements that share its grammar. Its commands have no location: the commas outside brackets
//! separate them, and the grammar makes exactly one node of each.

use super::context::{Context, Span, string};
use super::drop::object_kind;
use super::name::{behavior, role};
use super::table::range_var;
use crate::ast::{
    AlterConstraint, AlterTable, AlterTableAction, AlterTableCommand, AlterTableMoveAll, Firing, Name, ReplicaIdentity,
    RowSecurity, TriggerChoice,
};
use pg::AlterTableType as Kind;
use pg::node::Node;
use pgvet_parser::protobuf as pg;

impl Context<'_> {
    pub(super) fn alter_table(&self, alter: &pg::AlterTableStmt, span: Span) -> AlterTable {
        let relation = alter.relation.as_ref();
        let name = self.required_relation(relation);
        let mut start = self.index_after(name.range());
        // `ONLY (name)` and `name *`.
        while self.is_mark(start, b')') || self.text(start) == "*" {
            start += 1;
        }
        let parts = self.split(span.from(start), b',');
        let commands = alter.cmds.iter().enumerate().filter_map(|(at, node)| {
            let Some(Node::AlterTableCmd(command)) = &node.node else { return None };
            self.command(command, parts.get(at).copied().unwrap_or_else(|| span.from(start)))
        });
        AlterTable {
            kind: object_kind(alter.objtype()),
            only: relation.is_some_and(|relation| !relation.inh),
            if_exists: alter.missing_ok,
            commands: commands.collect(),
            cascade: alter.cmds.iter().any(|node| {
                matches!(&node.node, Some(Node::AlterTableCmd(command))
                    if command.behavior() == pg::DropBehavior::DropCascade)
            }),
            name,
        }
    }

    fn command(&self, command: &pg::AlterTableCmd, span: Span) -> Option<AlterTableCommand> {
        let (keyword, after) = self.command_keyword(command.subtype(), span);
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

    /// The words behind `ALTER COLUMN name`.
    fn column_keyword(&self, kind: Kind, action: Span) -> Span {
        let words = match kind {
            Kind::AtAlterColumnType => {
                let word = self.find_word(action, &["TYPE"]).unwrap_or(action.start);
                return action.to(self.type_end(word + 1));
            }
            Kind::AtSetNotNull | Kind::AtDropNotNull => 3,
            Kind::AtSetOptions | Kind::AtResetOptions | Kind::AtAlterColumnGenericOptions | Kind::AtSetIdentity => 1,
            _ => 2,
        };
        action.to((action.start + words).min(action.end))
    }

    fn action(&self, command: &pg::AlterTableCmd, name: Span, span: Span) -> Option<AlterTableAction> {
        use AlterTableAction as Action;
        let kind = command.subtype();
        let column = || self.name_at(name.start, &command.name);
        let def = command.def.as_deref().and_then(|node| node.node.as_ref());
        Some(match kind {
            Kind::AtAddColumn => match def {
                Some(Node::ColumnDef(definition)) => {
                    Action::AddColumn { column: self.column_def(definition), if_not_exists: command.missing_ok }
                }
                _ => return None,
            },
            Kind::AtDropColumn => Action::DropColumn {
                column: column(),
                if_exists: command.missing_ok,
                behavior: behavior(command.behavior()),
            },
            Kind::AtAlterColumnType => self.alter_type(command, column())?,
            Kind::AtColumnDefault => match command.def.as_deref() {
                Some(default) => Action::SetDefault { column: column(), default: self.expression(default) },
                None => Action::DropDefault { column: column() },
            },
            Kind::AtSetNotNull => Action::SetNotNull { column: column() },
            Kind::AtDropNotNull => Action::DropNotNull { column: column() },
            Kind::AtSetExpression => {
                Action::SetExpression { column: column(), expression: self.operand(command.def.as_deref()) }
            }
            Kind::AtDropExpression => Action::DropExpression { column: column(), if_exists: command.missing_ok },
            Kind::AtSetStatistics => Action::SetStatistics { column: (!command.name.is_empty()).then(column) },
            Kind::AtSetOptions | Kind::AtResetOptions => Action::SetColumnOptions {
                column: column(),
                options: self.options(list(def)),
                reset: kind == Kind::AtResetOptions,
            },
            Kind::AtSetStorage => Action::SetStorage { column: column(), storage: text(command) },
            Kind::AtSetCompression => Action::SetCompression { column: column(), method: text(command) },
            Kind::AtAddIdentity => match def {
                Some(Node::Constraint(identity)) => Action::AddIdentity {
                    column: column(),
                    always: identity.generated_when == "a",
                    options: self.options(&identity.options),
                },
                _ => return None,
            },
            Kind::AtSetIdentity => Action::SetIdentity { column: column(), options: self.options(list(def)) },
            Kind::AtDropIdentity => Action::DropIdentity { column: column(), if_exists: command.missing_ok },
            _ => return self.table_action(command, name, span),
        })
    }

    /// Commands that are not about one column.
    fn table_action(&self, command: &pg::AlterTableCmd, after: Span, span: Span) -> Option<AlterTableAction> {
        use AlterTableAction as Action;
        let name = || self.name(after, &command.name);
        let def = command.def.as_deref();
        Some(match command.subtype() {
            Kind::AtAddConstraint => match def.and_then(super::constraint::constraint_node) {
                Some(constraint) => Action::AddConstraint(self.table_constraint(constraint)),
                None => return None,
            },
            Kind::AtAlterConstraint => Action::AlterConstraint(self.alter_constraint(def?, after)?),
            Kind::AtValidateConstraint => Action::ValidateConstraint { name: name() },
            Kind::AtDropConstraint => Action::DropConstraint {
                name: name(),
                if_exists: command.missing_ok,
                behavior: behavior(command.behavior()),
            },
            Kind::AtClusterOn => Action::ClusterOn { index: name() },
            Kind::AtDropCluster => Action::SetWithoutCluster,
            Kind::AtSetLogged => Action::SetLogged,
            Kind::AtSetUnLogged => Action::SetUnlogged,
            Kind::AtDropOids => Action::SetWithoutOids,
            Kind::AtSetAccessMethod => Action::SetAccessMethod { method: (!command.name.is_empty()).then(name) },
            Kind::AtSetTableSpace => Action::SetTablespace { tablespace: name() },
            Kind::AtSetRelOptions => Action::SetOptions(self.options(list(def.and_then(|node| node.node.as_ref())))),
            Kind::AtResetRelOptions => {
                Action::ResetOptions(self.options(list(def.and_then(|node| node.node.as_ref()))))
            }
            Kind::AtAddInherit => Action::Inherit { parent: self.relation(range_var(def?)?) },
            Kind::AtDropInherit => Action::NoInherit { parent: self.relation(range_var(def?)?) },
            Kind::AtAddOf => match &def?.node {
                Some(Node::TypeName(node)) => Action::OfType { type_name: self.type_name(node) },
                _ => return None,
            },
            Kind::AtDropOf => Action::NotOf,
            Kind::AtChangeOwner => {
                Action::ChangeOwner { role: command.newowner.as_ref().map(role).unwrap_or_default() }
            }
            Kind::AtReplicaIdentity => Action::ReplicaIdentity(self.replica_identity(def?, span)?),
            Kind::AtEnableRowSecurity => Action::RowSecurity(RowSecurity::Enable),
            Kind::AtDisableRowSecurity => Action::RowSecurity(RowSecurity::Disable),
            Kind::AtForceRowSecurity => Action::RowSecurity(RowSecurity::Force),
            Kind::AtNoForceRowSecurity => Action::RowSecurity(RowSecurity::NoForce),
            Kind::AtGenericOptions | Kind::AtAlterColumnGenericOptions => Action::ForeignOptions,
            Kind::AtAttachPartition | Kind::AtDetachPartition | Kind::AtDetachPartitionFinalize => {
                self.partition_action(command)?
            }
            kind => firing_action(kind, name)?,
        })
    }

    fn alter_type(&self, command: &pg::AlterTableCmd, column: Name) -> Option<AlterTableAction> {
        let Some(Node::ColumnDef(definition)) = command.def.as_deref().and_then(|node| node.node.as_ref()) else {
            return None;
        };
        Some(AlterTableAction::AlterColumnType {
            column,
            type_name: self.required_type(definition.type_name.as_ref()),
            collation: definition.coll_clause.as_deref().and_then(|collate| self.collation(collate)),
            using: self.optional(definition.raw_default.as_deref()),
        })
    }

    fn alter_constraint(&self, def: &pg::Node, after: Span) -> Option<AlterConstraint> {
        let Some(Node::AtalterConstraint(alter)) = &def.node else { return None };
        Some(AlterConstraint {
            name: self.name(after, &alter.conname),
            deferrable: alter.alter_deferrability.then_some(alter.deferrable),
            initially_deferred: alter.initdeferred,
            enforced: alter.alter_enforceability.then_some(alter.is_enforced),
            no_inherit: alter.alter_inheritability.then_some(alter.noinherit),
        })
    }

    fn replica_identity(&self, def: &pg::Node, span: Span) -> Option<ReplicaIdentity> {
        let Some(Node::ReplicaIdentityStmt(identity)) = &def.node else { return None };
        Some(match identity.identity_type.as_str() {
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
        let Some(Node::PartitionCmd(partition)) = command.def.as_deref().and_then(|node| node.node.as_ref()) else {
            return None;
        };
        let name = self.required_relation(partition.name.as_ref());
        Some(match command.subtype() {
            Kind::AtAttachPartition => AlterTableAction::AttachPartition {
                partition: name,
                bound: partition.bound.as_ref().map(|bound| self.partition_bound(bound)),
            },
            kind => AlterTableAction::DetachPartition {
                partition: name,
                concurrently: partition.concurrent,
                finalize: kind == Kind::AtDetachPartitionFinalize,
            },
        })
    }
}

pub(super) fn alter_table_move_all(alter: &pg::AlterTableMoveAllStmt) -> AlterTableMoveAll {
    AlterTableMoveAll {
        kind: object_kind(alter.objtype()),
        from: alter.orig_tablespacename.as_str().into(),
        to: alter.new_tablespacename.as_str().into(),
    }
}

/// The last word of a command's keyword, where it is not simply its first.
fn last_keyword(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::AtValidateConstraint | Kind::AtDropConstraint | Kind::AtAlterConstraint => "CONSTRAINT",
        Kind::AtClusterOn => "ON",
        Kind::AtDropCluster => "CLUSTER",
        Kind::AtSetLogged => "LOGGED",
        Kind::AtSetUnLogged => "UNLOGGED",
        Kind::AtDropOids => "OIDS",
        Kind::AtSetAccessMethod => "METHOD",
        Kind::AtSetTableSpace => "TABLESPACE",
        Kind::AtEnableTrig
        | Kind::AtEnableAlwaysTrig
        | Kind::AtEnableReplicaTrig
        | Kind::AtDisableTrig
        | Kind::AtEnableTrigAll
        | Kind::AtDisableTrigAll
        | Kind::AtEnableTrigUser
        | Kind::AtDisableTrigUser => "TRIGGER",
        Kind::AtEnableRule | Kind::AtEnableAlwaysRule | Kind::AtEnableReplicaRule | Kind::AtDisableRule => "RULE",
        Kind::AtDropInherit => "INHERIT",
        Kind::AtDropOf => "OF",
        Kind::AtChangeOwner => "TO",
        Kind::AtReplicaIdentity => "IDENTITY",
        Kind::AtEnableRowSecurity
        | Kind::AtDisableRowSecurity
        | Kind::AtForceRowSecurity
        | Kind::AtNoForceRowSecurity => "SECURITY",
        Kind::AtAttachPartition | Kind::AtDetachPartition | Kind::AtDetachPartitionFinalize => "PARTITION",
        _ => return None,
    })
}

/// ENABLE and DISABLE of triggers and rules. `None` for what the grammar never makes.
fn firing_action(kind: Kind, name: impl Fn() -> Name) -> Option<AlterTableAction> {
    let trigger = |firing, which| AlterTableAction::Trigger { firing, which };
    let rule = |firing| AlterTableAction::Rule { firing, name: name() };
    Some(match kind {
        Kind::AtEnableTrig => trigger(Firing::Enable, TriggerChoice::Named(name())),
        Kind::AtEnableAlwaysTrig => trigger(Firing::EnableAlways, TriggerChoice::Named(name())),
        Kind::AtEnableReplicaTrig => trigger(Firing::EnableReplica, TriggerChoice::Named(name())),
        Kind::AtDisableTrig => trigger(Firing::Disable, TriggerChoice::Named(name())),
        Kind::AtEnableTrigAll => trigger(Firing::Enable, TriggerChoice::All),
        Kind::AtDisableTrigAll => trigger(Firing::Disable, TriggerChoice::All),
        Kind::AtEnableTrigUser => trigger(Firing::Enable, TriggerChoice::User),
        Kind::AtDisableTrigUser => trigger(Firing::Disable, TriggerChoice::User),
        Kind::AtEnableRule => rule(Firing::Enable),
        Kind::AtEnableAlwaysRule => rule(Firing::EnableAlways),
        Kind::AtEnableReplicaRule => rule(Firing::EnableReplica),
        Kind::AtDisableRule => rule(Firing::Disable),
        _ => return None,
    })
}

fn list(node: Option<&Node>) -> &[pg::Node] {
    match node {
        Some(Node::List(list)) => &list.items,
        _ => &[],
    }
}

fn text(command: &pg::AlterTableCmd) -> smol_str::SmolStr {
    command.def.as_deref().and_then(string).unwrap_or_default().into()
}
