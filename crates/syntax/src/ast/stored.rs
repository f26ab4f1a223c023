//! Code that a statement puts into the catalog, where it runs later: checks, defaults, keys of indexes, views, policies.

use super::{
    AlterDomainAction, AlterTable, AlterTableAction, Ast, ColumnDef, Constraint, ConstraintKind, CreateIndex,
    CreateTable, Expr, FunctionBody, Part, PartitionBound, PublicationObject, TableElement,
};

impl Ast {
    /// Calls `visit` on every part of every expression and query that the statement stores. The source of a function is
    /// text, and no part of it.
    pub fn visit_stored<'a>(&'a self, visit: &mut dyn FnMut(Part<'a>)) {
        match self {
            Self::CreateTable(create) => table(create, visit),
            Self::AlterTable(alter) => actions(alter, visit),
            Self::CreateIndex(create) => index(create, visit),
            Self::CreateStatistics(create) => all(&create.elements, visit),
            Self::CreateView(create) => create.query.visit(visit),
            Self::CreateTableAs(create) if create.materialized_view => {
                create.query.iter().for_each(|query| query.visit(visit));
            }
            Self::CreateDomain(create) => constraints(&create.constraints, visit),
            Self::AlterDomain(alter) => match &alter.action {
                AlterDomainAction::SetDefault(default) => default.visit(visit),
                AlterDomainAction::AddConstraint(added) => constraint(added, visit),
                _ => {}
            },
            Self::CreateTrigger(create) => all(&create.condition, visit),
            Self::CreateRule(create) => {
                all(&create.condition, visit);
                create.actions.iter().for_each(|action| action.visit(visit));
            }
            Self::CreatePolicy(policy) => all(policy.using.iter().chain(&policy.check), visit),
            Self::AlterPolicy(policy) => all(policy.using.iter().chain(&policy.check), visit),
            Self::CreateFunction(create) => {
                all(create.parameters.iter().filter_map(|parameter| parameter.default.as_ref()), visit);
                if let FunctionBody::Atomic { statements, .. } = &create.body {
                    statements.iter().for_each(|statement| statement.visit(visit));
                }
            }
            Self::CreatePublication(create) => filters(&create.objects, visit),
            Self::AlterPublication(alter) => filters(&alter.objects, visit),
            Self::CreateSchema(create) => create.elements.iter().for_each(|element| element.visit_stored(visit)),
            _ => {}
        }
    }
}

fn table<'a>(create: &'a CreateTable, visit: &mut dyn FnMut(Part<'a>)) {
    for element in &create.elements {
        match element {
            TableElement::Column(definition) => column(definition, visit),
            TableElement::Constraint(one) => constraint(one, visit),
            TableElement::Like { .. } => {}
        }
    }
    if let Some((_, limits)) = &create.partition_of {
        bound(limits, visit);
    }
    all(create.partition_by.iter().flat_map(|partitioned| &partitioned.keys), visit);
}

fn actions<'a>(alter: &'a AlterTable, visit: &mut dyn FnMut(Part<'a>)) {
    use AlterTableAction as A;
    for command in &alter.commands {
        match &command.action {
            A::AddColumn { column: definition, .. } => column(definition, visit),
            A::AddConstraint(added) => constraint(added, visit),
            A::SetDefault { default: expression, .. }
            | A::SetExpression { expression, .. }
            | A::AlterColumnType { using: Some(expression), .. } => expression.visit(visit),
            A::AttachPartition { bound: Some(limits), .. } => bound(limits, visit),
            _ => {}
        }
    }
}

fn index<'a>(create: &'a CreateIndex, visit: &mut dyn FnMut(Part<'a>)) {
    all(create.elements.iter().map(|element| &element.key).chain(&create.predicate), visit);
}

fn column<'a>(definition: &'a ColumnDef, visit: &mut dyn FnMut(Part<'a>)) {
    constraints(&definition.constraints, visit);
}

fn constraints<'a>(list: &'a [Constraint], visit: &mut dyn FnMut(Part<'a>)) {
    list.iter().for_each(|one| constraint(one, visit));
}

fn constraint<'a>(constraint: &'a Constraint, visit: &mut dyn FnMut(Part<'a>)) {
    match &constraint.kind {
        ConstraintKind::Default(expression)
        | ConstraintKind::Check(expression)
        | ConstraintKind::Generated { expression, .. } => expression.visit(visit),
        ConstraintKind::Exclude(exclude) => {
            all(exclude.elements.iter().map(|(element, _)| &element.key).chain(&exclude.predicate), visit);
        }
        _ => {}
    }
}

fn bound<'a>(bound: &'a PartitionBound, visit: &mut dyn FnMut(Part<'a>)) {
    match bound {
        PartitionBound::List(values) => all(values, visit),
        PartitionBound::Range { from, to } => all(from.iter().chain(to), visit),
        PartitionBound::Default | PartitionBound::Hash { .. } => {}
    }
}

fn filters<'a>(objects: &'a [PublicationObject], visit: &mut dyn FnMut(Part<'a>)) {
    for object in objects {
        if let PublicationObject::Table { filter: Some(filter), .. } = object {
            filter.visit(visit);
        }
    }
}

fn all<'a>(expressions: impl IntoIterator<Item = &'a Expr>, visit: &mut dyn FnMut(Part<'a>)) {
    expressions.into_iter().for_each(|expression| expression.visit(visit));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::ExprKind;
    use crate::ast::from_pg::parse_sql;

    #[test]
    fn all_that_is_stored_is_reached() {
        let sql = "CREATE TABLE t (a int DEFAULT f1() CHECK (f2()), b int GENERATED ALWAYS AS (f3()) STORED,
                CHECK (f4()), EXCLUDE USING gist (f5() WITH =) WHERE (f6())) PARTITION BY LIST (f7());
            CREATE TABLE p PARTITION OF t FOR VALUES IN (f8());
            CREATE TABLE q PARTITION OF t FOR VALUES FROM (f9()) TO (f10());
            ALTER TABLE t ADD a int DEFAULT f11(), ADD CHECK (f12()), ALTER a SET DEFAULT f13(),
                ALTER a SET EXPRESSION AS (f14()), ALTER a TYPE int USING f15();
            CREATE INDEX ON t ((f16())) WHERE f17();
            CREATE STATISTICS s ON (f18()), (f19()) FROM t;
            CREATE VIEW v AS SELECT f20();
            CREATE MATERIALIZED VIEW m AS SELECT f21();
            CREATE DOMAIN d AS int DEFAULT f22() CHECK (f23());
            ALTER DOMAIN d SET DEFAULT f24();
            ALTER DOMAIN d ADD CHECK (f25());
            CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW WHEN (f26()) EXECUTE FUNCTION f();
            CREATE RULE r AS ON INSERT TO t WHERE f27() DO ALSO SELECT f28();
            CREATE POLICY p ON t USING (f29()) WITH CHECK (f30());
            ALTER POLICY p ON t USING (f31()) WITH CHECK (f32());
            CREATE FUNCTION f(a int DEFAULT f33()) RETURNS int RETURN f34();
            CREATE PUBLICATION p FOR TABLE t WHERE (f35());
            ALTER PUBLICATION p ADD TABLE t WHERE (f36());
            CREATE SCHEMA s CREATE TABLE t (a int DEFAULT f37()) CREATE VIEW v AS SELECT f38();
            ALTER TABLE t ATTACH PARTITION p FOR VALUES IN (f39())";
        let mut names = std::collections::BTreeSet::new();
        for statement in parse_sql(sql).unwrap() {
            statement.visit_stored(&mut |part| {
                if let Part::Expr(Expr { kind: ExprKind::Call(call), .. }) = part {
                    names.insert(call.name.to_string());
                }
            });
        }
        let missing: Vec<String> = (1..=39).map(|at| format!("f{at}")).filter(|name| !names.contains(name)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
