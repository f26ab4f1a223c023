//! Names of rules as users type them.

use crate::args::RuleArgs;
use crate::error::Failure;
use pgvet_linter::rule::RuleMeta;
use pgvet_linter::rules;

/// The rule of that name, or a message that names the nearest one.
pub(crate) fn find(name: &str) -> Result<&'static RuleMeta, Failure> {
    rules::find(name).map(|rule| &rule.meta).ok_or_else(|| {
        let failure = Failure::new(format!("there is no rule `{name}`"));
        match rules::nearest(name) {
            Some(nearest) => failure.help(format!("did you mean `{nearest}`? `pgvet rules` lists all rules")),
            None => failure.help("`pgvet rules` lists all rules"),
        }
    })
}

/// Are all rules that the arguments name there?
pub(crate) fn check(args: &RuleArgs) -> Result<(), Failure> {
    args.only.iter().chain(&args.ignore).try_for_each(|name| find(name).map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_rule_is_refused() {
        assert!(find("no-such-rule-at-all").is_err());
    }
}
