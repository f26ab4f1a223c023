//! Policies that read each other in a circle.

use pgvet_model::catalog::{Catalog, ConditionReads, Oid, Policy, Relation, RelationKind};
use pgvet_model::routine::Routine;
use pgvet_syntax::ast::{ExprKind, ObjectName, Part};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

/// Maximum number of policies on the way to a circle.
const MAX_STEPS: usize = 100;

/// A command that policies restrict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Command {
    Select,
    Insert,
    Update,
    Delete,
}

impl Command {
    pub(super) const ALL: [Self; 4] = [Self::Select, Self::Insert, Self::Update, Self::Delete];

    pub(super) fn keyword(self) -> &'static str {
        match self {
            Self::Select => "SELECT",
            Self::Insert => "INSERT",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    fn is_of(self, policy: &Policy) -> bool {
        policy.command == "all" || self.keyword().eq_ignore_ascii_case(&policy.command)
    }
}

/// How a policy reads a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// A subquery of its condition, which PostgreSQL expands before it runs the query.
    Subquery,
    /// A function that its condition calls.
    Function {
        function: Oid,
        /// Whether something else decides if it is called.
        conditional: bool,
    },
}

/// A policy of a table that reads another table, or its own.
#[derive(Debug, Clone)]
pub(super) struct Step<'c> {
    pub(super) table: &'c Relation,
    pub(super) policy: &'c Policy,
    pub(super) way: Way,
    pub(super) read: &'c Relation,
}

/// Tables that read each other.
#[derive(Debug, Clone)]
pub(super) struct Circle<'c> {
    /// The steps from the table of the query.
    pub(super) steps: Vec<Step<'c>>,
    /// The first of them that belongs to the circle.
    from: usize,
    /// The table whose rows could be read, if none of its policies for SELECT contained a subquery.
    pub(super) readable_without_subquery: Option<&'c Relation>,
}

impl<'c> Circle<'c> {
    /// The first function through which the policies read a table, and whether something else decides if one is called.
    pub(super) fn function(&self) -> Option<(Oid, bool)> {
        let functions = || {
            self.steps.iter().filter_map(|step| match step.way {
                Way::Function { function, conditional } => Some((function, conditional)),
                Way::Subquery => None,
            })
        };
        let (first, _) = functions().next()?;
        Some((first, functions().any(|(_, conditional)| conditional)))
    }

    pub(super) fn steps_of_circle(&self) -> &[Step<'c>] {
        &self.steps[self.from..]
    }

    /// Its tables, without order.
    pub(super) fn tables(&self) -> BTreeSet<Oid> {
        self.steps_of_circle().iter().map(|step| step.table.oid).collect()
    }
}

/// What the code of a function reads, whatever its arguments are.
#[derive(Debug, Default)]
struct FunctionReads {
    relations: Vec<Oid>,
    calls: Vec<Oid>,
}

/// A condition that applies to a command.
struct Condition<'c> {
    policy: &'c Policy,
    reads: &'c ConditionReads,
    /// Whether it is one of several of which one is enough.
    alternative: bool,
}

/// The policies as they apply to one role.
pub(super) struct Circles<'c> {
    catalog: &'c Catalog,
    routine: &'c dyn Fn(Oid) -> Option<Rc<Routine>>,
    /// `None`: a role to which only policies for all roles apply.
    role: Option<&'c SmolStr>,
    roles: Vec<SmolStr>,
    /// Whether views can use the privileges of the role that queries them.
    has_invoker_views: bool,
    /// Whether functions are followed.
    follows_functions: bool,
    functions: RefCell<FxHashMap<Oid, Rc<FunctionReads>>>,
    /// Tables whose rows can be read.
    readable: RefCell<FxHashSet<Oid>>,
}

impl<'c> Circles<'c> {
    pub(super) fn new(
        catalog: &'c Catalog,
        routine: &'c dyn Fn(Oid) -> Option<Rc<Routine>>,
        role: Option<&'c SmolStr>,
        has_invoker_views: bool,
    ) -> Self {
        Self {
            catalog,
            routine,
            role,
            roles: role.map(|role| catalog.roles_of(role)).unwrap_or_default(),
            has_invoker_views,
            follows_functions: false,
            functions: RefCell::default(),
            readable: RefCell::default(),
        }
    }

    /// The same, with the functions that policies call.
    pub(super) fn with_functions(self) -> Self {
        Self { follows_functions: true, readable: RefCell::default(), ..self }
    }

    /// The circle because of which a command on a table fails.
    ///
    /// Source: PostgreSQL 18, `src/backend/rewrite/rewriteHandler.c`, `fireRIRrules`: while the policies of a table are
    /// expanded, it must not be read again if one of those that apply contains a subquery.
    pub(super) fn of(&self, table: &'c Relation, command: Command) -> Option<Circle<'c>> {
        let open = if command == Command::Select { vec![(table.oid, 0)] } else { Vec::new() };
        let mut walk = Walk { circles: self, table, command, path: Vec::new(), open, seen: FxHashSet::default() };
        let circle = walk.enter(table, &self.conditions_of(table, command));
        if circle.is_none() {
            self.readable.borrow_mut().extend(walk.seen);
        }
        circle
    }

    /// The conditions of a command, without those that it has because it reads rows.
    ///
    /// Source: PostgreSQL 18, `src/backend/rewrite/rowsecurity.c`, `get_row_security_policies`.
    fn conditions_of(&self, table: &'c Relation, command: Command) -> Vec<Condition<'c>> {
        let using = |policy: &'c Policy| policy.using.is_some().then_some(&policy.using_reads);
        let check = |policy: &'c Policy| match &policy.check {
            Some(_) => Some(&policy.check_reads),
            None => using(policy),
        };
        match command {
            Command::Select | Command::Delete => self.applying(table, command, using),
            Command::Insert => self.applying(table, command, check),
            Command::Update => {
                let mut conditions = self.applying(table, command, using);
                conditions.extend(self.applying(table, command, check));
                conditions
            }
        }
    }

    /// The conditions of the policies for a command. Restrictive policies matter only if there is a permissive one.
    ///
    /// Source: PostgreSQL 18, `src/backend/rewrite/rowsecurity.c`, `add_security_quals` and `add_with_check_options`.
    fn applying(
        &self,
        table: &'c Relation,
        command: Command,
        condition: impl Fn(&'c Policy) -> Option<&'c ConditionReads>,
    ) -> Vec<Condition<'c>> {
        let of_kind = |permissive: bool| {
            let policies = table.policies.iter().filter(move |policy| policy.permissive == permissive);
            let applying = policies.filter(|policy| command.is_of(policy) && self.applies(policy));
            applying.filter_map(|policy| Some((&**policy, condition(policy)?))).collect::<Vec<_>>()
        };
        let (permissive, restrictive) = (of_kind(true), of_kind(false));
        if permissive.is_empty() {
            return Vec::new();
        }
        let several = permissive.len() > 1;
        let found = |alternative: bool| move |(policy, reads)| Condition { policy, reads, alternative };
        let restrictive = restrictive.into_iter().map(found(false));
        permissive.into_iter().map(found(several)).chain(restrictive).collect()
    }

    fn applies(&self, policy: &Policy) -> bool {
        policy.roles.is_empty() || policy.roles.iter().any(|role| role == "public" || self.roles.contains(role))
    }

    /// Whether row-level security applies to the role.
    ///
    /// Source: PostgreSQL 18, `src/backend/utils/misc/rls.c`, `check_enable_rls`.
    fn is_restricted(&self, table: &Relation) -> bool {
        let is_owner = || self.role.is_some_and(|role| table.owner.as_ref() == Some(role));
        table.row_security && (table.force_row_security || !is_owner())
    }

    /// The tables that conditions read.
    fn steps(&self, table: &'c Relation, conditions: &[Condition<'c>]) -> Vec<Step<'c>> {
        let mut steps = Vec::new();
        for Condition { policy, reads, alternative } in conditions {
            for read in reads.relations.iter().flat_map(|oid| self.tables(*oid)) {
                steps.push(Step { table, policy, way: Way::Subquery, read });
            }
            for call in reads.calls.iter().filter(|_| self.follows_functions) {
                let conditional = call.conditional || *alternative;
                let way = Way::Function { function: call.function, conditional };
                let read = self.read_by_function(call.function);
                steps.extend(read.into_iter().map(|read| Step { table, policy, way, read }));
            }
        }
        steps
    }

    /// The table, or those that a view reads with the privileges of the role that queries it.
    fn tables(&self, oid: Oid) -> Vec<&'c Relation> {
        let (mut found, mut open, mut seen) = (Vec::new(), vec![oid], FxHashSet::default());
        while let Some(oid) = open.pop() {
            let Some(relation) = self.catalog.get_relation(oid).filter(|_| seen.insert(oid)) else { continue };
            match relation.kind {
                RelationKind::Table | RelationKind::PartitionedTable => found.push(&**relation),
                RelationKind::View if self.has_invoker_views && relation.is_security_invoker() => {
                    open.extend(relation.view().iter().flat_map(|view| &view.references).map(|(oid, _)| *oid));
                }
                _ => {}
            }
        }
        found
    }

    /// The tables that a function reads, itself and in the functions that it calls.
    fn read_by_function(&self, function: Oid) -> Vec<&'c Relation> {
        let (mut found, mut open, mut seen) = (Vec::new(), vec![function], FxHashSet::default());
        while let Some(oid) = open.pop() {
            if seen.insert(oid) {
                let reads = self.function_reads(oid);
                found.extend(reads.relations.iter().flat_map(|oid| self.tables(*oid)));
                open.extend(&reads.calls);
            }
        }
        found
    }

    fn function_reads(&self, oid: Oid) -> Rc<FunctionReads> {
        if let Some(known) = self.functions.borrow().get(&oid) {
            return Rc::clone(known);
        }
        let reads = Rc::new(self.read_function(oid).unwrap_or_default());
        self.functions.borrow_mut().insert(oid, Rc::clone(&reads));
        reads
    }

    /// What a function reads that runs with the privileges of its caller and has no branches.
    fn read_function(&self, oid: Oid) -> Option<FunctionReads> {
        let function = self.catalog.get_function(oid).filter(|function| !function.security_definer)?;
        let routine = (self.routine)(function.oid)?;
        let steps = routine.steps();
        if !routine.unread.is_empty() || steps.iter().any(|step| !step.around.is_empty()) {
            return None;
        }
        let mut reads = FunctionReads::default();
        for sql in steps.iter().flat_map(|step| &step.sql).filter(|sql| sql.dynamic.is_none()) {
            let mut ctes: Vec<&SmolStr> = Vec::new();
            sql.ast.visit(&mut |part| {
                if let Part::Query(query) = part {
                    ctes.extend(query.with.iter().flat_map(|with| &with.ctes).map(|cte| &cte.name.text));
                }
            });
            let is_cte = |name: &ObjectName| name.schema.is_none() && ctes.contains(&&name.name.text);
            sql.ast.visit(&mut |part| match part {
                Part::Read(read) if !is_cte(&read.name) => {
                    reads.relations.extend(self.catalog.find_relation(&read.name, &routine.search_path));
                }
                Part::Expr(expr) => {
                    if let ExprKind::Call(call) = &expr.kind
                        && let [called] = self.catalog.functions_called(call, &routine.search_path)[..]
                    {
                        reads.calls.push(called);
                    }
                }
                _ => {}
            });
        }
        Some(reads)
    }
}

/// A search for a circle.
struct Walk<'w, 'c> {
    circles: &'w Circles<'c>,
    /// The table of the query, and what it does.
    table: &'c Relation,
    command: Command,
    path: Vec<Step<'c>>,
    /// Where the path left the tables that are being read.
    open: Vec<(Oid, usize)>,
    seen: FxHashSet<Oid>,
}

impl<'c> Walk<'_, 'c> {
    /// Expands the conditions of a table.
    fn enter(&mut self, table: &'c Relation, conditions: &[Condition<'c>]) -> Option<Circle<'c>> {
        let circles = self.circles;
        if self.path.len() >= MAX_STEPS || !circles.is_restricted(table) {
            return None;
        }
        for step in circles.steps(table, conditions) {
            let read = step.read;
            self.path.push(step);
            let circle = self.read(read);
            if circle.is_some() {
                return circle;
            }
            self.path.pop();
        }
        None
    }

    /// Reads a table for a policy.
    fn read(&mut self, table: &'c Relation) -> Option<Circle<'c>> {
        if let Some((_, from)) = self.open.iter().find(|(open, _)| *open == table.oid) {
            return Some(self.circle(*from));
        }
        let conditions = self.circles.conditions_of(table, Command::Select);
        if table.oid == self.table.oid && self.refuses(table, &conditions) {
            return Some(Circle { readable_without_subquery: Some(table), ..self.circle(0) });
        }
        if !self.seen.insert(table.oid) || self.is_known_to_be_readable(table) {
            return None;
        }
        self.open.push((table.oid, self.path.len()));
        let circle = self.enter(table, &conditions);
        self.open.pop();
        circle
    }

    fn circle(&self, from: usize) -> Circle<'c> {
        Circle { steps: self.path.clone(), from, readable_without_subquery: None }
    }

    /// Whether PostgreSQL refuses to read the table that the query changes, although reading it alone would succeed: it is
    /// enough that a policy contains a subquery, even in its other condition.
    fn refuses(&self, table: &Relation, conditions: &[Condition<'c>]) -> bool {
        let has_subquery = |policy: &Policy| policy.using_reads.has_subquery || policy.check_reads.has_subquery;
        self.circles.is_restricted(table)
            && self.path.iter().all(|step| step.way == Way::Subquery)
            && conditions.iter().any(|condition| has_subquery(condition.policy))
    }

    /// Reading a table can also fail because the command on the first table is not to read it.
    fn is_known_to_be_readable(&self, table: &Relation) -> bool {
        self.command == Command::Select && self.circles.readable.borrow().contains(&table.oid)
    }
}
