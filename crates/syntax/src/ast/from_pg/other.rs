//! Statements that the model knows by their tag only.

use super::context::{Context, Span, written};
use super::drop::{object_kind, unqualified};
use crate::ast::{Ast, CreateOther, CreateTypeKind, DefElem, ObjectKind};
use pg::Node;
use pgvet_parser::tree as pg;
use smol_str::SmolStr;

impl Context<'_> {
    /// Objects known by keyword, statements that PostgreSQL refuses in a transaction block, and the rest.
    pub(super) fn other_statement(&self, node: Node<'_>, span: Span) -> Ast {
        self.cluster_wide(node, span).or_else(|| self.known_by_tag(node, span)).unwrap_or_else(|| match node {
            Node::Other(tag) if tag.statement() == Some("DeallocateStmt") => self.deallocate(span),
            Node::Other(tag) => Ast::Other(SmolStr::new_static(tag.statement().unwrap_or("Unknown"))),
            _ => Ast::Other(SmolStr::new_static("Unknown")),
        })
    }

    fn tagged(&self, tag: &'static str, name: &str, options: pg::List<'_>, span: Span) -> Ast {
        let name = written(name).map(|name| unqualified(self.name(span, &name)));
        Ast::CreateOther(Box::new(CreateOther { tag, name, options: self.options(options) }))
    }

    fn tagged_path(&self, tag: &'static str, path: pg::List<'_>, options: pg::List<'_>, span: Span) -> Ast {
        let first = path.iter().find_map(super::context::string).and_then(|first| self.find_name(span, first));
        let name = Some(self.object_name_of(path, first.unwrap_or(span.start)));
        Ast::CreateOther(Box::new(CreateOther { tag, name, options: self.options(options) }))
    }

    fn cluster_wide(&self, node: Node<'_>, span: Span) -> Option<Ast> {
        let after = span.from(span.start + 2);
        Some(match node {
            Node::CreatedbStmt(node) => self.tagged("CREATE DATABASE", &node.dbname, node.options, after),
            Node::DropdbStmt(node) => self.tagged("DROP DATABASE", &node.dbname, node.options, after),
            Node::AlterDatabaseStmt(node) => self.tagged("ALTER DATABASE", &node.dbname, node.options, after),
            Node::CreateTableSpaceStmt(node) => {
                self.tagged("CREATE TABLESPACE", &node.tablespacename, node.options, after)
            }
            Node::DropTableSpaceStmt(node) => {
                self.tagged("DROP TABLESPACE", &node.tablespacename, pg::List::EMPTY, after)
            }
            Node::AlterSystemStmt(node) => {
                let setting = node.setstmt.map_or("", |set| set.name.as_str());
                self.tagged("ALTER SYSTEM", setting, pg::List::EMPTY, after)
            }
            Node::CreateSubscriptionStmt(node) => {
                self.tagged("CREATE SUBSCRIPTION", &node.subname, node.options, after)
            }
            Node::AlterSubscriptionStmt(node) => self.alter_subscription(node, after),
            Node::DropSubscriptionStmt(node) => self.tagged("DROP SUBSCRIPTION", &node.subname, pg::List::EMPTY, after),
            Node::SecLabelStmt(node) => match object_kind(node.objtype) {
                ObjectKind::Role => self.tagged("SECURITY LABEL ON ROLE", "", pg::List::EMPTY, after),
                ObjectKind::Database => self.tagged("SECURITY LABEL ON DATABASE", "", pg::List::EMPTY, after),
                ObjectKind::Tablespace => self.tagged("SECURITY LABEL ON TABLESPACE", "", pg::List::EMPTY, after),
                _ => Ast::Other(SmolStr::new_static("SecLabelStmt")),
            },
            _ => return None,
        })
    }

    /// Whether the transaction block and the publisher matter depends on what is altered, so that is kept as an option.
    fn alter_subscription(&self, node: &pg::AlterSubscriptionStmt, span: Span) -> Ast {
        use crate::ast::DefValue;
        let mut options: Vec<DefElem> = self.options(node.options);
        let action = match node.kind {
            pg::AlterSubscriptionType::ALTER_SUBSCRIPTION_CONNECTION => "connection",
            pg::AlterSubscriptionType::ALTER_SUBSCRIPTION_REFRESH => "refresh publication",
            pg::AlterSubscriptionType::ALTER_SUBSCRIPTION_SET_PUBLICATION => "set publication",
            pg::AlterSubscriptionType::ALTER_SUBSCRIPTION_ADD_PUBLICATION => "add publication",
            pg::AlterSubscriptionType::ALTER_SUBSCRIPTION_DROP_PUBLICATION => "drop publication",
            _ => "",
        };
        if !action.is_empty() {
            let range = self.token_range(span.start + 1);
            options.push(DefElem { namespace: None, name: action.into(), value: DefValue::None, range });
        }
        let name = written(&node.subname).map(|name| unqualified(self.name(span, &name)));
        Ast::CreateOther(Box::new(CreateOther { tag: "ALTER SUBSCRIPTION", name, options }))
    }

    fn known_by_tag(&self, node: Node<'_>, span: Span) -> Option<Ast> {
        let after = span.from(span.start + 1);
        Some(match node {
            Node::CreateEventTrigStmt(node) => {
                self.tagged("CREATE EVENT TRIGGER", &node.trigname, pg::List::EMPTY, after)
            }
            Node::AlterEventTrigStmt(node) => {
                self.tagged("ALTER EVENT TRIGGER", &node.trigname, pg::List::EMPTY, after)
            }
            Node::CreateFdwStmt(node) => {
                self.tagged("CREATE FOREIGN DATA WRAPPER", &node.fdwname, pg::List::EMPTY, after)
            }
            Node::CreateForeignServerStmt(node) => {
                self.tagged("CREATE SERVER", &node.servername, pg::List::EMPTY, after)
            }
            Node::CreateUserMappingStmt(_) => self.tagged("CREATE USER MAPPING", "", pg::List::EMPTY, after),
            Node::CreatePLangStmt(node) => self.tagged("CREATE LANGUAGE", &node.plname, pg::List::EMPTY, after),
            Node::CreateAmStmt(node) => self.tagged("CREATE ACCESS METHOD", &node.amname, pg::List::EMPTY, after),
            Node::CreateConversionStmt(node) => {
                self.tagged_path("CREATE CONVERSION", node.conversion_name, pg::List::EMPTY, after)
            }
            Node::CreateCastStmt(_) => self.tagged("CREATE CAST", "", pg::List::EMPTY, after),
            Node::CreateTransformStmt(_) => self.tagged("CREATE TRANSFORM", "", pg::List::EMPTY, after),
            Node::CreateOpClassStmt(node) => {
                self.tagged_path("CREATE OPERATOR CLASS", node.opclassname, pg::List::EMPTY, after)
            }
            Node::CreateOpFamilyStmt(node) => {
                self.tagged_path("CREATE OPERATOR FAMILY", node.opfamilyname, pg::List::EMPTY, after)
            }
            Node::ImportForeignSchemaStmt(node) => {
                self.tagged("IMPORT FOREIGN SCHEMA", &node.local_schema, pg::List::EMPTY, after)
            }
            Node::DefineStmt(node) => self.define(node, span),
            _ => return None,
        })
    }

    /// CREATE AGGREGATE, OPERATOR, TYPE, TEXT SEARCH ..., COLLATION.
    fn define(&self, define: &pg::DefineStmt, span: Span) -> Ast {
        use pg::ObjectType as Kind;
        let tag = match define.kind {
            Kind::OBJECT_TYPE => {
                let shell = define.definition.is_empty();
                let kind =
                    if shell { CreateTypeKind::Shell } else { CreateTypeKind::Base(self.options(define.definition)) };
                return Ast::CreateType(self.create_type(define.defnames, kind, span));
            }
            Kind::OBJECT_AGGREGATE => "CREATE AGGREGATE",
            Kind::OBJECT_OPERATOR => "CREATE OPERATOR",
            Kind::OBJECT_COLLATION => "CREATE COLLATION",
            Kind::OBJECT_TSPARSER => "CREATE TEXT SEARCH PARSER",
            Kind::OBJECT_TSDICTIONARY => "CREATE TEXT SEARCH DICTIONARY",
            Kind::OBJECT_TSTEMPLATE => "CREATE TEXT SEARCH TEMPLATE",
            Kind::OBJECT_TSCONFIGURATION => "CREATE TEXT SEARCH CONFIGURATION",
            _ => return Ast::Other(SmolStr::new_static("DefineStmt")),
        };
        self.tagged_path(tag, define.defnames, define.definition, span.from(span.start + 1))
    }
}
