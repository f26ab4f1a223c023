//! Statements that the model knows by their tag only.

use super::context::{Context, Span, written};
use super::drop::unqualified;
use crate::ast::{Ast, CreateOther, CreateTypeKind, DefElem};
use pg::node::Node;
use pgvet_parser::protobuf as pg;

impl Context<'_> {
    /// Objects known by keyword, statements that PostgreSQL refuses in a transaction block, and the rest.
    pub(super) fn other_statement(&self, node: &Node, span: Span) -> Ast {
        self.cluster_wide(node, span)
            .or_else(|| self.known_by_tag(node, span))
            .unwrap_or_else(|| Ast::Other(node_name(node)))
    }

    fn tagged(&self, tag: &'static str, name: &str, options: &[pg::Node], span: Span) -> Ast {
        let name = written(name).map(|name| unqualified(self.name(span, &name)));
        Ast::CreateOther(CreateOther { tag, name, options: self.options(options) })
    }

    fn tagged_path(&self, tag: &'static str, path: &[pg::Node], options: &[pg::Node], span: Span) -> Ast {
        let first = path.iter().find_map(super::context::string).and_then(|first| self.find_name(span, first));
        let name = Some(self.object_name_of(path, first.unwrap_or(span.start)));
        Ast::CreateOther(CreateOther { tag, name, options: self.options(options) })
    }

    fn cluster_wide(&self, node: &Node, span: Span) -> Option<Ast> {
        let after = span.from(span.start + 2);
        Some(match node {
            Node::CreatedbStmt(node) => self.tagged("CREATE DATABASE", &node.dbname, &node.options, after),
            Node::DropdbStmt(node) => self.tagged("DROP DATABASE", &node.dbname, &node.options, after),
            Node::AlterDatabaseStmt(node) => self.tagged("ALTER DATABASE", &node.dbname, &node.options, after),
            Node::CreateTableSpaceStmt(node) => {
                self.tagged("CREATE TABLESPACE", &node.tablespacename, &node.options, after)
            }
            Node::DropTableSpaceStmt(node) => self.tagged("DROP TABLESPACE", &node.tablespacename, &[], after),
            Node::AlterSystemStmt(node) => {
                let setting = node.setstmt.as_ref().map_or("", |set| set.name.as_str());
                self.tagged("ALTER SYSTEM", setting, &[], after)
            }
            Node::CreateSubscriptionStmt(node) => {
                self.tagged("CREATE SUBSCRIPTION", &node.subname, &node.options, after)
            }
            Node::AlterSubscriptionStmt(node) => self.alter_subscription(node, after),
            Node::DropSubscriptionStmt(node) => self.tagged("DROP SUBSCRIPTION", &node.subname, &[], after),
            _ => return None,
        })
    }

    /// Whether the transaction block matters depends on what is altered, so that is kept as an option.
    fn alter_subscription(&self, node: &pg::AlterSubscriptionStmt, span: Span) -> Ast {
        use crate::ast::DefValue;
        let mut options: Vec<DefElem> = self.options(&node.options);
        let action = match node.kind() {
            pg::AlterSubscriptionType::AlterSubscriptionRefresh => "refresh publication",
            pg::AlterSubscriptionType::AlterSubscriptionSetPublication => "set publication",
            pg::AlterSubscriptionType::AlterSubscriptionAddPublication => "add publication",
            pg::AlterSubscriptionType::AlterSubscriptionDropPublication => "drop publication",
            _ => "",
        };
        if !action.is_empty() {
            let range = self.token_range(span.start + 1);
            options.push(DefElem { namespace: None, name: action.into(), value: DefValue::None, range });
        }
        let name = written(&node.subname).map(|name| unqualified(self.name(span, &name)));
        Ast::CreateOther(CreateOther { tag: "ALTER SUBSCRIPTION", name, options })
    }

    fn known_by_tag(&self, node: &Node, span: Span) -> Option<Ast> {
        let after = span.from(span.start + 1);
        Some(match node {
            Node::CreateEventTrigStmt(node) => self.tagged("CREATE EVENT TRIGGER", &node.trigname, &[], after),
            Node::AlterEventTrigStmt(node) => self.tagged("ALTER EVENT TRIGGER", &node.trigname, &[], after),
            Node::CreateFdwStmt(node) => self.tagged("CREATE FOREIGN DATA WRAPPER", &node.fdwname, &[], after),
            Node::CreateForeignServerStmt(node) => self.tagged("CREATE SERVER", &node.servername, &[], after),
            Node::CreateUserMappingStmt(_) => self.tagged("CREATE USER MAPPING", "", &[], after),
            Node::CreatePlangStmt(node) => self.tagged("CREATE LANGUAGE", &node.plname, &[], after),
            Node::CreateAmStmt(node) => self.tagged("CREATE ACCESS METHOD", &node.amname, &[], after),
            Node::CreateConversionStmt(node) => {
                self.tagged_path("CREATE CONVERSION", &node.conversion_name, &[], after)
            }
            Node::CreateCastStmt(_) => self.tagged("CREATE CAST", "", &[], after),
            Node::CreateTransformStmt(_) => self.tagged("CREATE TRANSFORM", "", &[], after),
            Node::CreateOpClassStmt(node) => self.tagged_path("CREATE OPERATOR CLASS", &node.opclassname, &[], after),
            Node::CreateOpFamilyStmt(node) => {
                self.tagged_path("CREATE OPERATOR FAMILY", &node.opfamilyname, &[], after)
            }
            Node::ImportForeignSchemaStmt(node) => self.tagged("IMPORT FOREIGN SCHEMA", &node.local_schema, &[], after),
            Node::DefineStmt(node) => self.define(node, span),
            _ => return None,
        })
    }

    /// CREATE AGGREGATE, OPERATOR, TYPE, TEXT SEARCH ..., COLLATION.
    fn define(&self, define: &pg::DefineStmt, span: Span) -> Ast {
        use pg::ObjectType as Kind;
        let tag = match define.kind() {
            Kind::ObjectType => {
                let shell = define.definition.is_empty();
                let kind =
                    if shell { CreateTypeKind::Shell } else { CreateTypeKind::Base(self.options(&define.definition)) };
                return Ast::CreateType(self.create_type(&define.defnames, kind, span));
            }
            Kind::ObjectAggregate => "CREATE AGGREGATE",
            Kind::ObjectOperator => "CREATE OPERATOR",
            Kind::ObjectCollation => "CREATE COLLATION",
            Kind::ObjectTsparser => "CREATE TEXT SEARCH PARSER",
            Kind::ObjectTsdictionary => "CREATE TEXT SEARCH DICTIONARY",
            Kind::ObjectTstemplate => "CREATE TEXT SEARCH TEMPLATE",
            Kind::ObjectTsconfiguration => "CREATE TEXT SEARCH CONFIGURATION",
            _ => return Ast::Other("DefineStmt"),
        };
        self.tagged_path(tag, &define.defnames, &define.definition, span.from(span.start + 1))
    }
}

/// PostgreSQL's name of a node without a type of ours.
fn node_name(node: &Node) -> &'static str {
    match node {
        Node::VariableShowStmt(_) => "VariableShowStmt",
        Node::ConstraintsSetStmt(_) => "ConstraintsSetStmt",
        Node::CheckPointStmt(_) => "CheckPointStmt",
        Node::LoadStmt(_) => "LoadStmt",
        Node::ListenStmt(_) => "ListenStmt",
        Node::UnlistenStmt(_) => "UnlistenStmt",
        Node::NotifyStmt(_) => "NotifyStmt",
        Node::DeallocateStmt(_) => "DeallocateStmt",
        Node::FetchStmt(_) => "FetchStmt",
        Node::ClosePortalStmt(_) => "ClosePortalStmt",
        Node::CreateRoleStmt(_) => "CreateRoleStmt",
        Node::AlterRoleStmt(_) => "AlterRoleStmt",
        Node::AlterRoleSetStmt(_) => "AlterRoleSetStmt",
        Node::DropRoleStmt(_) => "DropRoleStmt",
        Node::GrantRoleStmt(_) => "GrantRoleStmt",
        Node::AlterExtensionStmt(_) => "AlterExtensionStmt",
        Node::AlterExtensionContentsStmt(_) => "AlterExtensionContentsStmt",
        Node::AlterDatabaseSetStmt(_) => "AlterDatabaseSetStmt",
        Node::AlterDatabaseRefreshCollStmt(_) => "AlterDatabaseRefreshCollStmt",
        Node::AlterTableSpaceOptionsStmt(_) => "AlterTableSpaceOptionsStmt",
        Node::AlterFdwStmt(_) => "AlterFdwStmt",
        Node::AlterForeignServerStmt(_) => "AlterForeignServerStmt",
        Node::AlterUserMappingStmt(_) => "AlterUserMappingStmt",
        Node::DropUserMappingStmt(_) => "DropUserMappingStmt",
        Node::AlterOpFamilyStmt(_) => "AlterOpFamilyStmt",
        Node::AlterOperatorStmt(_) => "AlterOperatorStmt",
        Node::AlterTypeStmt(_) => "AlterTypeStmt",
        Node::AlterObjectDependsStmt(_) => "AlterObjectDependsStmt",
        Node::AlterCollationStmt(_) => "AlterCollationStmt",
        Node::AlterStatsStmt(_) => "AlterStatsStmt",
        Node::AlterTsdictionaryStmt(_) => "AlterTSDictionaryStmt",
        Node::AlterTsconfigurationStmt(_) => "AlterTSConfigurationStmt",
        Node::SecLabelStmt(_) => "SecLabelStmt",
        _ => "Unknown",
    }
}
