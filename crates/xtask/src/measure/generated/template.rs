//! Statements with alternatives and slots: `DROP TABLE [|IF EXISTS ]{table}[| CASCADE]`.
//!
//! `[a|b]` is one of its parts, each as likely as the others; `{slot}` is filled in, and where nothing fits the whole
//! template gives nothing.

use crate::measure::random::Random;

/// Fills slots.
pub(super) trait Fill {
    fn random(&mut self) -> &mut Random;
    fn slot(&mut self, name: &str) -> Option<String>;
}

/// A statement made of a template.
pub(super) fn expand(template: &str, fill: &mut dyn Fill) -> Option<String> {
    let mut made = String::new();
    let mut rest = template;
    while let Some(at) = rest.find(['[', '{']) {
        made.push_str(&rest[..at]);
        let opened = &rest[at + 1..];
        if rest[at..].starts_with('{') {
            let end = opened.find('}')?;
            made.push_str(&fill.slot(&opened[..end])?);
            rest = &opened[end + 1..];
        } else {
            let (parts, after) = alternatives(opened)?;
            let chosen = parts.get(fill.random().below(parts.len()))?;
            made.push_str(&expand(chosen, fill)?);
            rest = after;
        }
    }
    made.push_str(rest);
    Some(made)
}

/// The parts up to the closing bracket, and the rest of the text.
fn alternatives(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '[' => depth += 1,
            ']' if depth == 0 => {
                parts.push(&text[start..at]);
                return Some((parts, &text[at + 1..]));
            }
            ']' => depth -= 1,
            '|' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Names(Random);

    impl Fill for Names {
        fn random(&mut self) -> &mut Random {
            &mut self.0
        }

        fn slot(&mut self, name: &str) -> Option<String> {
            (name == "table").then(|| "t".to_owned())
        }
    }

    #[test]
    fn alternatives_nest_and_slots_are_filled() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..50 {
            seen.extend(expand("DROP {table}[| CASCADE[|!]]", &mut Names(Random::new(seed))));
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["DROP t", "DROP t CASCADE", "DROP t CASCADE!"]);
    }

    #[test]
    fn what_nothing_fits_gives_nothing() {
        assert_eq!(expand("DROP {view}", &mut Names(Random::new(0))), None);
    }
}
