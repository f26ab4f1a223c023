//! Which steps of a function can run together: branches of an IF or CASE exclude each other, and one that leaves the code
//! excludes what follows.

use pgvet_model::effect::{Branches, Decision};
use pgvet_model::routine::{Around, Node, Step};
use pgvet_syntax::plpgsql::{Block, Branch, Else, RaiseLevel, Statement, StatementKind};
use rustc_hash::FxHashMap;

/// The decisions of the code of a function, in the order of the text.
#[derive(Default)]
pub(super) struct Decisions {
    /// The number of the decision and the position among its branches, by the address of a branch.
    branches: FxHashMap<usize, (u32, usize)>,
    /// Numbers of blocks with EXCEPTION, by address.
    blocks: FxHashMap<usize, u32>,
    /// Branches that leave the code.
    left: Vec<Left>,
    count: u32,
}

/// Branches of a decision that do not lead to later steps.
struct Left {
    number: u32,
    branches: Vec<usize>,
    /// The loop whose round they end, by address; `None` if they end the function.
    of_loop: Option<usize>,
}

/// How statements end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    /// EXIT or CONTINUE.
    Round,
    /// RETURN, or an error.
    Function,
}

/// Numbers of decisions that the model makes in code that a statement calls are lower.
const FIRST: u32 = 1 << 31;

/// Whether no later step runs in the same transaction.
pub(super) fn ends_transaction(step: &Step<'_>) -> bool {
    let Node::Statement(statement) = step.node else { return false };
    match &statement.kind {
        StatementKind::Commit(_) | StatementKind::Rollback(_) => true,
        StatementKind::Return(_) => step.around.iter().all(|around| matches!(around, Around::Exception { .. })),
        _ => false,
    }
}

impl Decisions {
    /// Notes the branches that begin with a step.
    pub(super) fn note(&mut self, step: &Step<'_>) {
        let Node::Statement(statement) = step.node else { return };
        let (branches, otherwise) = match &statement.kind {
            StatementKind::If(conditional) => (&conditional.branches, conditional.otherwise.as_ref()),
            StatementKind::Case(case) => (&case.branches, case.otherwise.as_ref()),
            _ => return,
        };
        let number = FIRST + self.count;
        self.count += 1;
        let branches = branches.iter().map(|branch| (address(branch), &branch.statements));
        let branches = branches.chain(otherwise.map(|otherwise| (address(otherwise), &otherwise.statements)));
        let (mut of_round, mut of_function) = (Vec::new(), Vec::new());
        for (position, (address, statements)) in branches.enumerate() {
            self.branches.insert(address, (number, position));
            match end_of(statements) {
                Some(End::Round) => of_round.push(position),
                Some(End::Function) => of_function.push(position),
                None => {}
            }
        }
        let innermost = step.innermost_loop().map(|(_, a_loop)| address(a_loop));
        if !of_round.is_empty() {
            self.left.push(Left { number, branches: of_round, of_loop: innermost });
        }
        if !of_function.is_empty() {
            self.left.push(Left { number, branches: of_function, of_loop: None });
        }
    }

    /// The decisions that lead to a step.
    pub(super) fn of(&mut self, step: &Step<'_>) -> Branches {
        let mut decisions: Vec<Decision> = step.around.iter().filter_map(|around| self.one(around)).collect();
        let is_inside = |left: &&Left| decisions.iter().any(|decision| decision.number == left.number);
        let loops: Vec<usize> = step.around.iter().filter_map(loop_address).collect();
        let is_in_round = |left: &&Left| left.of_loop.is_none_or(|a_loop| loops.contains(&a_loop));
        let left = self.left.iter().filter(|left| !is_inside(left)).filter(is_in_round);
        let left: Vec<Decision> = left.map(|left| Decision::other_than(left.number, &left.branches)).collect();
        decisions.extend(left);
        Branches::new(&decisions)
    }

    fn one(&mut self, around: &Around<'_>) -> Option<Decision> {
        let of_branch = |address: usize| {
            let (number, position) = self.branches.get(&address)?;
            Some(Decision::branch(*number, *position))
        };
        match around {
            Around::Branch(branch) => of_branch(address::<Branch>(branch)),
            Around::Else(otherwise) => of_branch(address::<Else>(otherwise)),
            // A loop may have no round.
            Around::Loop { a_loop, .. } => Some(Decision::branch(self.block(address(*a_loop)), 0)),
            Around::Exception { block, .. } => Some(Decision::branch(self.block(address::<Block>(block)), 0)),
            // The locks of the block are released before its handler runs.
            Around::Handler { block, .. } => Some(Decision::branch(self.block(address::<Block>(block)), 1)),
        }
    }

    fn block(&mut self, address: usize) -> u32 {
        let count = &mut self.count;
        *self.blocks.entry(address).or_insert_with(|| {
            *count += 1;
            FIRST + *count - 1
        })
    }
}

fn loop_address(around: &Around<'_>) -> Option<usize> {
    match around {
        Around::Loop { a_loop, .. } => Some(address(*a_loop)),
        _ => None,
    }
}

/// How statements end, if none of their runs goes on with what follows.
fn end_of(statements: &[Statement]) -> Option<End> {
    statements.iter().find_map(|statement| match &statement.kind {
        StatementKind::Return(_) => Some(End::Function),
        StatementKind::Raise(raise) if raise.level == RaiseLevel::Exception => Some(End::Function),
        StatementKind::Exit(exit) | StatementKind::Continue(exit) if exit.when.is_none() && exit.label.is_none() => {
            Some(End::Round)
        }
        StatementKind::Block(block) if block.exception.is_none() => end_of(&block.statements),
        StatementKind::If(conditional) => end_of_all(&conditional.branches, Some(conditional.otherwise.as_ref()?)),
        // Without ELSE, a CASE that no branch matches is an error.
        StatementKind::Case(case) => end_of_all(&case.branches, case.otherwise.as_ref()),
        _ => None,
    })
}

fn end_of_all(branches: &[Branch], otherwise: Option<&Else>) -> Option<End> {
    let branches = branches.iter().map(|branch| end_of(&branch.statements));
    let ends: Option<Vec<End>> = branches.chain(otherwise.map(|otherwise| end_of(&otherwise.statements))).collect();
    ends?.into_iter().min()
}

fn address<T>(of: &T) -> usize {
    std::ptr::from_ref(of).addr()
}
