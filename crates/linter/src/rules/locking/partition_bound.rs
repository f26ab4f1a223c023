//! Help about partitions: the bound of one as the condition of a CHECK.

use crate::rule::RuleContext;
use crate::rules::text::identifier;
use pgvet_model::catalog::{Oid, Relation};
use pgvet_syntax::ast::{Expr, ExprKind, Literal, ObjectName, PartitionBound};

/// The condition that a bound puts on rows, where the parent's key is one column and the bound holds no null:
/// `k >= 1 AND k < 10`, `k IN ('a', 'b')`.
fn condition(context: &RuleContext<'_>, parent: &Relation, bound: &PartitionBound) -> Option<String> {
    let key = key(parent)?;
    let text = |value: &Expr| context.text(value.range).to_owned();
    match bound {
        PartitionBound::List(values) => {
            let null = |value: &Expr| matches!(value.kind, ExprKind::Literal(Literal::Null));
            let list: Vec<String> = values.iter().map(text).collect();
            (!values.iter().any(null)).then(|| format!("{key} IN ({})", list.join(", ")))
        }
        PartitionBound::Range { from, to } => {
            let side = |values: &[Expr], operator: &str| match values {
                [value] if !is_unbounded(value) => Some(format!("{key} {operator} {}", text(value))),
                _ => None,
            };
            let sides: Vec<String> = [side(from, ">="), side(to, "<")].into_iter().flatten().collect();
            (!sides.is_empty()).then(|| sides.join(" AND "))
        }
        PartitionBound::Hash { .. } | PartitionBound::Default => None,
    }
}

/// The name of the key where it is one column.
fn key(parent: &Relation) -> Option<String> {
    match parent.partition_by.as_ref()?.keys.as_slice() {
        [key] => key.as_column().map(|name| identifier(name)),
        _ => None,
    }
}

/// MINVALUE and MAXVALUE.
fn is_unbounded(value: &Expr) -> bool {
    value.as_column().is_some_and(|word| matches!(word.as_str(), "minvalue" | "maxvalue"))
}

/// The DEFAULT partition of a table, before the statement.
pub(crate) fn default_partition<'c>(context: &RuleContext<'c>, parent: Oid) -> Option<&'c Relation> {
    let default = context.before.get_relation(parent)?.bounds.default_partition()?;
    context.before.get_relation(default).map(AsRef::as_ref)
}

/// A CHECK that is added NOT VALID, validated, and not needed any more once a partition is attached.
pub(crate) struct Proof {
    table: String,
    name: String,
    condition: String,
}

impl Proof {
    /// That all rows of a table are within the bound.
    pub(crate) fn of_bound(
        context: &RuleContext<'_>,
        parent: &Relation,
        partition: &ObjectName,
        bound: &PartitionBound,
    ) -> Option<Self> {
        let (key, condition) = (key(parent)?, condition(context, parent, bound)?);
        Some(Self {
            table: context.text(partition.range()).to_owned(),
            name: identifier(&format!("{}_bound", partition.name.text)),
            condition: format!("{key} IS NOT NULL AND {condition}"),
        })
    }

    /// That no row of the DEFAULT partition belongs to the new one.
    pub(crate) fn of_default(
        context: &RuleContext<'_>,
        parent: &Relation,
        default: &str,
        partition: &ObjectName,
        bound: &PartitionBound,
    ) -> Option<Self> {
        Some(Self {
            table: default.to_owned(),
            name: identifier(&format!("excludes_{}", partition.name.text)),
            condition: format!("NOT ({})", condition(context, parent, bound)?),
        })
    }

    pub(crate) fn statements(&self) -> [String; 2] {
        let Self { table, name, condition } = self;
        [
            format!("ALTER TABLE {table} ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID"),
            format!("ALTER TABLE {table} VALIDATE CONSTRAINT {name}"),
        ]
    }

    pub(crate) fn drop(&self) -> String {
        format!("ALTER TABLE {} DROP CONSTRAINT {}", self.table, self.name)
    }

    /// As lines of a help.
    pub(crate) fn lines(&self) -> String {
        let [add, validate] = self.statements();
        format!("\n    {add};\n    {validate};")
    }
}

/// What avoids the scan of the DEFAULT partition: a valid CHECK that no row of it belongs to the new partition.
pub(crate) fn default_scan_help(
    context: &RuleContext<'_>,
    parent: &Relation,
    bound: &PartitionBound,
    default: &str,
    partition: &ObjectName,
) -> String {
    match Proof::of_default(context, parent, default, partition, bound) {
        Some(proof) => {
            let lines = proof.lines();
            format!(
                "to avoid the scan of the DEFAULT partition, first add a CHECK constraint that excludes the rows of \
                 the new partition, and validate it in another transaction:{lines}"
            )
        }
        None => "to avoid the scan of the DEFAULT partition, first add a CHECK constraint as NOT VALID that excludes \
                 the rows of the new partition, and validate it in another transaction"
            .to_owned(),
    }
}
