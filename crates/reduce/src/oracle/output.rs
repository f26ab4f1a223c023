//! The last query still has the same output.

use super::server::Wanted;
use pgvet_trace::{Outcome, Output, Question};

/// The part of the output of the last query that must not differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedOutput {
    /// The values of its rows, in their order.
    Result,
    /// A node of its plan as EXPLAIN names it, such as `Seq Scan on orders`.
    PlanNode(String),
}

impl WantedOutput {
    /// Reads `result`, or `plan:` and a node.
    ///
    /// # Errors
    /// Says what the text should be like.
    pub fn parse(text: &str) -> Result<Self, String> {
        let node = text.strip_prefix("plan:").map(str::trim).filter(|node| !node.is_empty());
        match node {
            Some(node) => Ok(Self::PlanNode(node.to_owned())),
            None if text == "result" => Ok(Self::Result),
            None => Err(format!(
                "`{text}` is neither `result` nor a node of a plan; write a node as EXPLAIN shows it: \
                 'plan:Seq Scan on orders'"
            )),
        }
    }

    /// What a server is asked.
    pub fn question(&self) -> Question {
        match self {
            Self::Result => Question::Rows,
            Self::PlanNode(_) => Question::Plan,
        }
    }
}

impl Wanted for WantedOutput {
    type Shown = Output;

    fn shown(&self, outcome: &Outcome) -> Option<Output> {
        let Outcome::Done(output) = outcome else { return None };
        match (self, output) {
            (Self::Result, Output::Rows { .. }) => Some(output.clone()),
            (Self::PlanNode(wanted), Output::Plan(nodes)) => {
                nodes.iter().any(|node| names(node, wanted)).then(|| Output::Plan(vec![wanted.clone()]))
            }
            _ => None,
        }
    }
}

/// Whether the name of a node has these words one after the other.
fn names(node: &str, wanted: &str) -> bool {
    let (node, wanted): (Vec<&str>, Vec<&str>) =
        (node.split_whitespace().collect(), wanted.split_whitespace().collect());
    node.windows(wanted.len().max(1)).any(|words| words == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_nodes_are_read() {
        assert_eq!(WantedOutput::parse("result"), Ok(WantedOutput::Result));
        assert_eq!(WantedOutput::parse("plan: Sort"), Ok(WantedOutput::PlanNode("Sort".to_owned())));
        for wrong in ["plan:", "Seq Scan", ""] {
            assert!(WantedOutput::parse(wrong).is_err_and(|message| message.contains("'plan:Seq Scan on orders'")));
        }
    }

    #[test]
    fn a_node_is_named_by_some_of_its_words() {
        assert!(names("Parallel Seq Scan on orders o", "Seq Scan on orders"));
        assert!(!names("Seq Scan on orders_old", "Seq Scan on orders"));
        assert!(!names("Sort", "Sort Key"));
    }

    #[test]
    fn the_other_nodes_of_a_plan_may_change() {
        let outcome =
            |nodes: &[&str]| Outcome::Done(Output::Plan(nodes.iter().map(|node| (*node).to_owned()).collect()));
        let wanted = WantedOutput::PlanNode("Sort".to_owned());
        assert_eq!(wanted.shown(&outcome(&["Sort", "Seq Scan on t"])), wanted.shown(&outcome(&["Limit", "Sort"])));
        assert_eq!(wanted.shown(&outcome(&["Limit"])), None);
    }
}
