//! CREATE DOMAIN and ALTER DOMAIN.

use crate::catalog::{Domain, DomainCheck, Mention, Named, Oid, RelationKind, TypeDef, TypeKind};
use crate::effect::{LockCause, ScanCause};
use crate::execute::{Executor, Run, fail};
use pgvet_syntax::ast::{
    AlterDomain, AlterDomainAction, Constraint, ConstraintKind, CreateDomain, Expr, LockMode, Name, ObjectKind,
};
use pgvet_syntax::source::TextRange;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;
use std::sync::Arc;

impl Executor<'_> {
    /// Source: PostgreSQL 18, `src/backend/commands/typecmds.c`, `DefineDomain`.
    pub(crate) fn create_domain(&mut self, create: &CreateDomain) -> Run {
        let schema = self.schema_to_fill(&create.name, false)?;
        let name = create.name.name.text.clone();
        self.check_type_is_new(&schema, &create.name)?;
        let base = self.require_type(&create.base)?;
        self.check_rests_on_another(&schema, create, base.oid)?;
        let mut domain = Domain {
            base,
            root: self.root_of(base.oid),
            not_null: false,
            not_null_name: None,
            default: None,
            checks: Named::new(),
        };
        for constraint in &create.constraints {
            match &constraint.kind {
                ConstraintKind::NotNull { .. } => {
                    self.forbid_nulls(&schema, &name, &mut domain, constraint.name.as_ref());
                }
                ConstraintKind::Default(default) => {
                    self.check_named_relations(default)?;
                    domain.default = Some(Arc::new(default.clone()));
                }
                ConstraintKind::Check(expression) => {
                    let check = self.domain_check(&schema, &name, &domain, constraint, expression);
                    domain.checks.push(check);
                }
                _ => {}
            }
        }
        self.catalog.add_type(&schema, &name, TypeKind::Domain(domain), self.transaction);
        Ok(())
    }

    fn root_of(&self, base: Oid) -> Oid {
        match self.catalog.get_type(base).map(|definition| &definition.kind) {
            Some(TypeKind::Domain(domain)) => domain.root,
            _ => base,
        }
    }

    /// The type that a domain is over, or that one is over, cannot be the new one: that it is named here, or was before,
    /// is all that makes it known.
    fn check_rests_on_another(&self, schema: &str, create: &CreateDomain, base: Oid) -> Run {
        let name = &create.name.name.text;
        let Some(own) = self.catalog.type_named(schema, name) else { return Ok(()) };
        if own == base {
            return fail("42704", format!("type \"{name}\" does not exist"), create.base.range);
        }
        let mut next = base;
        while let Some(domain) = self.domain(next) {
            next = domain.base.oid;
            if next == own {
                return fail("42710", format!("type \"{name}\" already exists"), create.name.range());
            }
        }
        Ok(())
    }

    fn domain_check(
        &self,
        schema: &str,
        domain: &str,
        others: &Domain,
        constraint: &Constraint,
        expression: &Expr,
    ) -> DomainCheck {
        let made = || {
            let taken: Vec<SmolStr> = others.constraint_names().cloned().collect();
            self.catalog.choose_constraint_name(domain, None, "check", schema, &taken)
        };
        let name = constraint.name.as_ref().map_or_else(made, |name| name.text.clone());
        DomainCheck { name, expression: Arc::new(expression.clone()), valid: !constraint.not_valid }
    }

    /// NOT NULL is a constraint with a name since 17.
    ///
    /// Source: PostgreSQL 17, `src/backend/commands/typecmds.c`, `domainAddNotNullConstraint`.
    fn forbid_nulls(&self, schema: &str, name: &str, domain: &mut Domain, given: Option<&Name>) {
        domain.not_null = true;
        if self.target.at_least(17) && domain.not_null_name.is_none() {
            let taken: Vec<SmolStr> = domain.constraint_names().cloned().collect();
            let made = || self.catalog.choose_constraint_name(name, None, "not_null", schema, &taken);
            domain.not_null_name = Some(given.map_or_else(made, |given| given.text.clone()));
        }
    }

    /// Source: PostgreSQL 18, `src/backend/commands/typecmds.c`, `AlterDomainAddConstraint` and its neighbours.
    pub(crate) fn alter_domain(&mut self, alter: &AlterDomain) -> Run {
        let range = alter.name.range();
        let found = self.named_type(&alter.name);
        match found.and_then(|oid| self.catalog.get_type(oid).cloned()) {
            Some(definition) => self.check_type_kind(&definition, ObjectKind::Domain, &alter.name)?,
            None => self.missing_type(&alter.name)?,
        }
        let Some((oid, mut domain)) = found.and_then(|oid| Some((oid, self.domain(oid)?))) else {
            self.unknown(format!("domain `{}` was used before any statement created it", alter.name));
            return Ok(());
        };
        match &alter.action {
            AlterDomainAction::SetDefault(default) => {
                self.check_named_relations(default)?;
                domain.default = Some(Arc::new(default.clone()));
            }
            AlterDomainAction::DropDefault => domain.default = None,
            AlterDomainAction::DropNotNull => (domain.not_null, domain.not_null_name) = (false, None),
            AlterDomainAction::SetNotNull => {
                if !domain.not_null {
                    self.check_domain_users(oid, None, range)?;
                }
                if let Some(TypeDef { schema, name, .. }) = self.catalog.get_type(oid).map(AsRef::as_ref) {
                    self.forbid_nulls(schema, name, &mut domain, None);
                }
            }
            AlterDomainAction::AddConstraint(constraint) => {
                self.add_domain_constraint(oid, &mut domain, constraint, range)?;
            }
            AlterDomainAction::DropConstraint { name, if_exists, .. } => {
                let exists = domain.has_constraint(&name.text);
                domain.checks.remove(&name.text);
                if domain.not_null_name.as_ref() == Some(&name.text) {
                    (domain.not_null, domain.not_null_name) = (false, None);
                }
                if !exists && !if_exists {
                    let reason = format!("constraint \"{}\" of domain \"{}\" does not exist", name.text, alter.name);
                    return fail("42704", reason, name.range);
                }
            }
            AlterDomainAction::ValidateConstraint { name } => {
                let check = domain.checks.get(&name.text).map(|check| Arc::clone(&check.expression));
                if !domain.checks.update(&name.text, |check| check.valid = true) {
                    let reason = format!("constraint \"{}\" of domain \"{}\" does not exist", name.text, alter.name);
                    return fail("42704", reason, name.range);
                }
                self.check_domain_users(oid, check.as_deref(), range)?;
            }
        }
        self.catalog.set_domain(oid, domain);
        Ok(())
    }

    fn add_domain_constraint(
        &mut self,
        oid: Oid,
        domain: &mut Domain,
        constraint: &Constraint,
        range: TextRange,
    ) -> Run {
        let Some((schema, name)) =
            self.catalog.get_type(oid).map(|definition| (definition.schema.clone(), definition.name.clone()))
        else {
            return Ok(());
        };
        match &constraint.kind {
            ConstraintKind::Check(expression) => {
                let check = self.domain_check(&schema, &name, domain, constraint, expression);
                if domain.has_constraint(&check.name) {
                    let reason = format!("constraint \"{}\" for domain \"{name}\" already exists", check.name);
                    return fail("42710", reason, constraint.range);
                }
                domain.checks.push(check);
                if !constraint.not_valid {
                    self.check_domain_users(oid, Some(expression), range)?;
                }
            }
            ConstraintKind::NotNull { .. } => {
                if !domain.not_null {
                    self.check_domain_users(oid, None, range)?;
                }
                self.forbid_nulls(&schema, &name, domain, constraint.name.as_ref());
            }
            _ => {}
        }
        Ok(())
    }

    fn domain(&self, oid: Oid) -> Option<Domain> {
        match &self.catalog.get_type(oid)?.kind {
            TypeKind::Domain(domain) => Some(domain.clone()),
            _ => None,
        }
    }

    /// Locks and reads every table with a column of the domain, or of a domain over it. Without `check`, for NOT NULL.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/typecmds.c`, `get_rels_with_domain`.
    fn check_domain_users(&mut self, domain: Oid, check: Option<&Expr>, range: TextRange) -> Run {
        let name = self.catalog.get_type(domain).map(|definition| definition.name.clone()).unwrap_or_default();
        self.catalog.read_mentions();
        for table in self.relations_using(domain) {
            let kind = self.catalog.relation(table).kind;
            if matches!(kind, RelationKind::Table | RelationKind::MaterializedView) {
                self.lock(table, LockMode::Share, LockCause::TypeUser, range);
                self.demand_of_domain(table, domain, check, range);
                self.scan(table, ScanCause::Domain { domain: name.clone() }, range);
            }
        }
        match self.nested_use(domain, false, &mut Vec::new()) {
            Some(table) => {
                let table = &self.catalog.relation(table).name;
                fail("0A000", format!("cannot alter type \"{name}\" because a column of \"{table}\" nests it"), range)
            }
            None => Ok(()),
        }
    }

    /// A table with a column whose array, composite or range type contains the domain: its values cannot be checked.
    ///
    /// Source: PostgreSQL 18, `src/backend/commands/tablecmds.c`, `find_composite_type_dependencies`.
    fn nested_use(&self, used: Oid, nested: bool, seen: &mut Vec<Oid>) -> Option<Oid> {
        if seen.contains(&used) {
            return None;
        }
        seen.push(used);
        let mentions = [Mention::Object(used)];
        for relation in self.catalog.relations_mentioning(&mentions) {
            if relation.kind.is_index() || !relation.columns.iter().any(|column| column.sql_type.oid == used) {
                continue;
            }
            let stored = matches!(
                relation.kind,
                RelationKind::Table | RelationKind::PartitionedTable | RelationKind::MaterializedView
            );
            if nested && stored {
                return Some(relation.oid);
            }
            let row_type = self.catalog.type_named(&relation.schema, &relation.name);
            if let Some(found) = row_type.and_then(|row_type| self.nested_use(row_type, true, seen)) {
                return Some(found);
            }
        }
        let array = self.catalog.get_type(used).map(|definition| definition.array).filter(|array| array.is_valid());
        let made = self.catalog.types_mentioning(&mentions).into_iter();
        let made = made.filter_map(|definition| match &definition.kind {
            TypeKind::Range { subtype } if subtype.oid == used => Some((definition.oid, true)),
            TypeKind::Domain(above) if above.base.oid == used => Some((definition.oid, nested)),
            _ => None,
        });
        let mut containers: Vec<(Oid, bool)> = made.chain(array.map(|array| (array, true))).collect();
        containers.sort_unstable();
        containers.into_iter().find_map(|(container, nested)| self.nested_use(container, nested, seen))
    }

    /// The relations with a column of the domain, or of a domain over it, in the order of creation.
    fn relations_using(&self, domain: Oid) -> Vec<Oid> {
        let domains = self.domains_over(domain);
        let is_user = |kind: RelationKind| {
            !matches!(kind, RelationKind::CompositeType | RelationKind::Sequence) && !kind.is_index()
        };
        let mentions: Vec<Mention> = domains.iter().map(|oid| Mention::Object(*oid)).collect();
        let mut users = self.catalog.relations_mentioning(&mentions);
        users.retain(|relation| {
            is_user(relation.kind) && relation.columns.iter().any(|column| domains.contains(&column.sql_type.oid))
        });
        users.into_iter().map(|relation| relation.oid).collect()
    }

    /// The domain, and all domains over it.
    fn domains_over(&self, domain: Oid) -> FxHashSet<Oid> {
        let mut found = FxHashSet::from_iter([domain]);
        let mut open = vec![domain];
        while let Some(below) = open.pop() {
            for definition in self.catalog.types_mentioning(&[Mention::Object(below)]) {
                let is_over = matches!(&definition.kind, TypeKind::Domain(above) if above.base.oid == below);
                if is_over && found.insert(definition.oid) {
                    open.push(definition.oid);
                }
            }
        }
        found
    }

    pub(crate) fn is_domain_over(&self, oid: Oid, domain: Oid) -> bool {
        let mut at = oid;
        while at != domain {
            match self.catalog.get_type(at).map(|definition| &definition.kind) {
                Some(TypeKind::Domain(above)) => at = above.base.oid,
                _ => return false,
            }
        }
        true
    }
}
