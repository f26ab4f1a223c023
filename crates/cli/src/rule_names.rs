//! Names of rules as users type them.

use crate::error::Failure;
use pgvet_linter::rule::RuleMeta;
use pgvet_linter::rules;

/// How many letters may be wrong for a name to be suggested.
const MAX_DISTANCE: usize = 4;

/// The rule of that name, or a message that names the nearest one.
pub(crate) fn find(name: &str) -> Result<&'static RuleMeta, Failure> {
    rules::find(name).map(|rule| &rule.meta).ok_or_else(|| {
        let failure = Failure::new(format!("there is no rule `{name}`"));
        match nearest(name, rules::all().iter().map(|rule| rule.meta.name)) {
            Some(nearest) => failure.help(format!("did you mean `{nearest}`? `pgvet rules` lists all rules")),
            None => failure.help("`pgvet rules` lists all rules"),
        }
    })
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.map(|known| (strsim::damerau_levenshtein(name, known), known));
    distances.min().filter(|(distance, _)| *distance <= MAX_DISTANCE).map(|(_, nearest)| nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_near_names_are_suggested() {
        let known = ["table-rewrite", "syntax-error"];
        assert_eq!(nearest("table-rewrit", known.into_iter()), Some("table-rewrite"));
        assert_eq!(nearest("something-else", known.into_iter()), None);
    }

    #[test]
    fn an_unknown_rule_is_refused() {
        assert!(find("no-such-rule-at-all").is_err());
    }
}
