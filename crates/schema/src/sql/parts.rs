//! Views, and what hangs on relations: triggers, policies, privileges.

use super::{Writer, deferral, is_table, quoted, quoted_list};
use crate::object::{Policy, Relation, RelationKind, Trigger};
use pgvet_syntax::deparse::string;
use pgvet_syntax::lexer::quote_identifier;

impl Writer<'_> {
    pub(super) fn view(&mut self, view: &Relation) {
        let name = quoted(&view.name);
        let full = view.name.to_string();
        let Some(query) = &view.query else { return self.omit("view", &full, "its query is not known") };
        let Some(query) = self.known(query, "view", &full) else { return };
        let query = query.trim().trim_end_matches(';');
        let word = if view.kind == RelationKind::MaterializedView { "MATERIALIZED VIEW" } else { "VIEW" };
        let columns: Vec<String> = view.columns.iter().map(|column| column.name.clone()).collect();
        // A dump of the model has the query as written, so that its columns may need their names.
        let columns = if columns.is_empty() { String::new() } else { format!(" ({})", quoted_list(&columns)) };
        let options = self.known(&view.options, "options of view", &full).filter(|options| !options.is_empty());
        let options = options.map_or_else(String::new, |options| format!(" WITH ({})", options.join(", ")));
        self.statement(&format!("CREATE {word} {name}{columns}{options} AS\n{query}"));
        for index in &view.indexes {
            self.index(view, index);
        }
    }

    pub(super) fn hangs_on(&mut self, relation: &Relation) {
        let name = quoted(&relation.name);
        if relation.kind == RelationKind::ForeignTable {
            self.omit("foreign table", &relation.name.to_string(), "its server is not known");
            return;
        }
        if is_table(relation) && matches!(relation.replica_identity.as_str(), "FULL" | "NOTHING") {
            self.statement(&format!("ALTER TABLE {name} REPLICA IDENTITY {}", relation.replica_identity));
        }
        if relation.row_level_security {
            self.statement(&format!("ALTER TABLE {name} ENABLE ROW LEVEL SECURITY"));
        }
        if relation.forced_row_level_security {
            self.statement(&format!("ALTER TABLE {name} FORCE ROW LEVEL SECURITY"));
        }
        relation.triggers.iter().for_each(|trigger| self.trigger(relation, trigger));
        relation.policies.iter().for_each(|policy| self.policy(relation, policy));
        for rule in &relation.rules {
            let name = format!("{}.{}", relation.name, rule.name);
            if let Some(definition) = self.known(&rule.definition, "rule", &name) {
                self.statement(definition.trim_end_matches(';'));
            }
        }
        for statistics in &relation.statistics {
            self.omit("statistics", &statistics.to_string(), "their columns are not known");
        }
        self.privileges("TABLE", &name, &relation.privileges);
    }

    fn trigger(&mut self, relation: &Relation, trigger: &Trigger) {
        let name = format!("{}.{}", relation.name, trigger.name);
        let (table, own) = (quoted(&relation.name), quote_identifier(&trigger.name));
        if !trigger.inherited {
            let condition = match &trigger.condition {
                None => String::new(),
                Some(condition) => match self.known(condition, "trigger", &name) {
                    Some(condition) => format!(" WHEN ({condition})"),
                    None => return,
                },
            };
            let known = self.known(&trigger.transition_tables, "trigger", &name);
            let Some(transition_tables) = known else { return };
            let referencing: Vec<String> = transition_tables
                .iter()
                .filter_map(|one| one.split_once(' '))
                .map(|(side, name)| format!("{side} TABLE AS {}", quote_identifier(name)))
                .collect();
            let referencing =
                if referencing.is_empty() { String::new() } else { format!(" REFERENCING {}", referencing.join(" ")) };
            let of = if trigger.columns.is_empty() {
                String::new()
            } else {
                format!(" OF {}", quoted_list(&trigger.columns))
            };
            let event = |event: &String| if event == "UPDATE" { format!("UPDATE{of}") } else { event.clone() };
            let events: Vec<String> = trigger.events.iter().map(event).collect();
            let arguments: Vec<String> = trigger.arguments.iter().map(|argument| string(argument)).collect();
            let constraint = if trigger.constraint { "CONSTRAINT " } else { "" };
            let deferral = deferral(trigger.deferrable, trigger.initially_deferred);
            let level = if trigger.for_each_row { "ROW" } else { "STATEMENT" };
            self.statement(&format!(
                "CREATE {constraint}TRIGGER {own} {} {} ON {table}{deferral}{referencing} FOR EACH {level}{condition} \
                 EXECUTE FUNCTION {}({})",
                trigger.timing,
                events.join(" OR "),
                quoted(&trigger.function),
                arguments.join(", ")
            ));
        }
        if trigger.firing != "ENABLE" {
            self.statement(&format!("ALTER TABLE {table} {} TRIGGER {own}", trigger.firing));
        }
    }

    fn policy(&mut self, relation: &Relation, policy: &Policy) {
        let name = format!("{}.{}", relation.name, policy.name);
        let mut text = format!("CREATE POLICY {} ON {}", quote_identifier(&policy.name), quoted(&relation.name));
        if !policy.permissive {
            text.push_str(" AS RESTRICTIVE");
        }
        let role = |role: &String| if role == "public" { "PUBLIC".to_owned() } else { quote_identifier(role) };
        let roles: Vec<String> = policy.roles.iter().map(role).collect();
        text = format!("{text} FOR {} TO {}", policy.command, roles.join(", "));
        for (word, condition) in [("USING", &policy.using), ("WITH CHECK", &policy.check)] {
            if let Some(condition) = condition {
                let Some(condition) = self.known(condition, "policy", &name) else { return };
                text = format!("{text} {word} ({condition})");
            }
        }
        self.statement(&text);
    }
}
