//! Statements about subscriptions that would connect to a publisher. A clone has no business there: it would make or drop
//! slots of production, and take what belongs to another subscriber. They are not run.

use crate::Error;
use crate::connection::Connection;
use crate::provider::ServerInfo;
use crate::script::Step;
use pgvet_syntax::ast::{Ast, CreateOther, FunctionBody};

/// Why a statement is not run, if it would connect to a publisher.
pub(crate) async fn refusal(
    step: &Step<'_>,
    connection: &Connection,
    server: &ServerInfo,
) -> Result<Option<String>, Error> {
    let (what, way_out) = match step.ast() {
        Some(Ast::CreateOther(other)) => {
            let Some(way_out) = way_out(other, step, connection).await? else { return Ok(None) };
            let name = other.name.as_ref().filter(|_| !step.filled);
            (name.map_or_else(|| other.tag.to_owned(), |name| format!("{} {}", other.tag, name.name.text)), way_out)
        }
        Some(Ast::Do(block)) if server.reaches_others => match &block.body {
            FunctionBody::Source { text, .. } if changes_subscriptions(text) => (
                "a DO block with subscriptions".to_owned(),
                "a private server can run it, because it connects to no other server",
            ),
            _ => return Ok(None),
        },
        None if step.statement.is_some() && changes_subscriptions(&step.sql) => {
            ("a statement about subscriptions that pgvet cannot read".to_owned(), "the statement was not traced")
        }
        _ => return Ok(None),
    };
    Ok(Some(format!("{what} was not run, because it would connect to its publisher: {way_out}")))
}

/// How to trace the same without a publisher; `None` where it needs none.
///
/// Source: PostgreSQL 18, `src/backend/commands/subscriptioncmds.c`.
async fn way_out(other: &CreateOther, step: &Step<'_>, connection: &Connection) -> Result<Option<&'static str>, Error> {
    Ok(match other.tag {
        "CREATE SUBSCRIPTION" => (!is_off(other, "connect")).then_some("with connect = false it is traced"),
        "ALTER SUBSCRIPTION" => alters_with_publisher(other),
        "DROP SUBSCRIPTION" => {
            has_slot(other, step, connection).await?.then_some("after SET (slot_name = NONE) it is traced")
        }
        _ => None,
    })
}

fn is_off(other: &CreateOther, name: &str) -> bool {
    other.options.iter().any(|option| option.name == name && option.as_bool() == Some(false))
}

fn alters_with_publisher(other: &CreateOther) -> Option<&'static str> {
    other.options.iter().find_map(|option| match option.name.as_str() {
        "set publication" | "add publication" | "drop publication" => {
            (!is_off(other, "refresh")).then_some("with refresh = false it is traced")
        }
        // Those of a subscription that is on begin to work at once.
        "enabled" => (!is_off(other, "enabled")).then_some("leave it disabled"),
        "connection" | "refresh publication" | "failover" | "two_phase" => {
            Some("only a run in production can show its effects")
        }
        _ => None,
    })
}

/// Whether the publisher keeps a slot, or slots of tables that are not yet copied, that DROP SUBSCRIPTION would drop.
async fn has_slot(other: &CreateOther, step: &Step<'_>, connection: &Connection) -> Result<bool, Error> {
    let name = other.name.as_ref().filter(|_| !step.filled).map(|name| name.name.text.replace('\'', "''"));
    let of_name = name.map_or_else(String::new, |name| format!(" AND s.subname = '{name}'"));
    let sql = format!(
        "SELECT FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid \
         WHERE d.datname = pg_catalog.current_database(){of_name} AND (s.subslotname IS NOT NULL OR EXISTS \
         (SELECT FROM pg_catalog.pg_subscription_rel r WHERE r.srsubid = s.oid AND r.srsubstate <> 'r'))"
    );
    Ok(!connection.rows(&sql).await?.is_empty())
}

/// Whether a text contains CREATE, ALTER or DROP SUBSCRIPTION, in dynamic SQL too.
fn changes_subscriptions(code: &str) -> bool {
    let words: Vec<&str> =
        code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    let changes = |word: &str| ["create", "alter", "drop"].iter().any(|verb| is(word, verb));
    words.windows(2).any(|pair| changes(pair[0]) && is(pair[1], "subscription"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pgvet_syntax::source::SourceFile;
    use pgvet_syntax::statement::parse_file;

    fn alters(what: &str) -> bool {
        let text = format!("ALTER SUBSCRIPTION s {what}");
        let file = parse_file(SourceFile::new("m.sql".to_owned(), text));
        let Some(Ast::CreateOther(other)) = file.statements[0].ast() else { panic!("{what}") };
        alters_with_publisher(other).is_some()
    }

    #[test]
    fn what_alters_a_subscription_may_need_its_publisher() {
        for what in [
            "REFRESH PUBLICATION",
            "ENABLE",
            "SET PUBLICATION p",
            "ADD PUBLICATION p WITH (copy_data = false)",
            "DROP PUBLICATION p WITH (refresh = true)",
            "CONNECTION 'host=other'",
            "SET (failover = true)",
        ] {
            assert!(alters(what), "{what}");
        }
        for what in ["DISABLE", "SET PUBLICATION p WITH (refresh = false)", "SET (slot_name = NONE, binary = true)"] {
            assert!(!alters(what), "{what}");
        }
    }

    #[test]
    fn subscriptions_are_found_in_code_and_in_dynamic_sql() {
        assert!(changes_subscriptions("BEGIN EXECUTE 'create\n subscription s'; END"));
        assert!(!changes_subscriptions("UPDATE subscription SET a = 1; DROP TABLE x; SELECT FROM pg_subscription"));
    }
}
