//! Whether a text may name an object, without parsing the text.

use pgvet_model::routine::words_of;
use rustc_hash::FxHashSet;

/// Whether the text may name this. Unquoted names are in lower case.
pub(crate) fn may_name(text: &str, name: &str) -> bool {
    text.contains(name) || (text.bytes().any(|b| b.is_ascii_uppercase()) && text.to_ascii_lowercase().contains(name))
}

/// Names to search for in texts. Each text is read once, whatever the number of names.
#[derive(Debug, Default)]
pub(crate) struct Names<'n> {
    words: FxHashSet<&'n str>,
    /// Those that are not a single word.
    others: Vec<&'n str>,
}

impl<'n> FromIterator<&'n str> for Names<'n> {
    fn from_iter<T: IntoIterator<Item = &'n str>>(names: T) -> Self {
        let mut found = Self::default();
        for name in names {
            if words_of(name).eq([name]) {
                found.words.insert(name);
            } else {
                found.others.push(name);
            }
        }
        found
    }
}

impl<'n> Names<'n> {
    /// Whether the text may name one of them.
    pub(crate) fn any_in(&self, text: &str) -> bool {
        self.each_in(text).next().is_some()
    }

    /// Those that the text may name, each as often as it does.
    pub(crate) fn each_in<'t>(&'t self, text: &'t str) -> impl Iterator<Item = &'n str> + 't {
        let words = words_of(text).filter_map(|word| {
            let has_capital = word.bytes().any(|byte| byte.is_ascii_uppercase());
            let folded =
                || has_capital.then(|| word.to_ascii_lowercase()).and_then(|word| self.words.get(word.as_str()));
            self.words.get(word).or_else(folded).copied()
        });
        words.chain(self.others.iter().copied().filter(|name| may_name(text, name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_words_and_quoted_names() {
        let names: Names<'_> = ["orders", "Mixed", "two words"].into_iter().collect();
        for (text, expected) in [
            ("DROP TABLE ORDERS", vec!["orders"]),
            ("DROP TABLE orders_old", vec![]),
            ("EXECUTE 'ALTER TABLE public.orders'", vec!["orders"]),
            ("SELECT * FROM \"Mixed\", mixed", vec!["Mixed"]),
            ("EXECUTE $s$DROP TABLE orders$s$", vec!["orders"]),
            ("SELECT \"two words\" FROM orders", vec!["orders", "two words"]),
        ] {
            assert_eq!(names.each_in(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
