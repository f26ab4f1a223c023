//! Delta debugging of a list: ever smaller parts of it are removed.
//!
//! Source: Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input", IEEE Transactions on Software
//! Engineering 28(2), 2002; here only complements are tried, as in C-Reduce, and the end of the list before its beginning,
//! because later statements depend on earlier ones.

/// Removes as many of `count` elements as it can while `holds` accepts the indexes of those that are left, at least
/// `least` of them. Returns those that were left. No single one of them can be removed.
pub(crate) fn minimize<E>(
    count: usize,
    least: usize,
    holds: &mut dyn FnMut(&[usize]) -> Result<bool, E>,
) -> Result<Vec<usize>, E> {
    let mut kept: Vec<usize> = (0..count).collect();
    let mut chunk = count.saturating_sub(least);
    while chunk > 0 {
        let mut end = kept.len();
        let mut removed = false;
        while end > 0 {
            let start = end.saturating_sub(chunk);
            let without = kept.len() - (end - start);
            if without >= least {
                let rest: Vec<usize> = kept[..start].iter().chain(&kept[end..]).copied().collect();
                if holds(&rest)? {
                    kept = rest;
                    removed = true;
                }
            }
            end = start;
        }
        chunk = match chunk {
            // What depended on a removed element can go as well.
            1 if removed => 1,
            1 => 0,
            _ => (chunk.min(kept.len()) / 2).max(1),
        };
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn kept(count: usize, least: usize, needed: &[usize]) -> (Vec<usize>, usize) {
        let mut tries = 0;
        let found = minimize(count, least, &mut |rest| {
            tries += 1;
            Ok::<_, Infallible>(needed.iter().all(|index| rest.contains(index)))
        });
        (found.unwrap(), tries)
    }

    #[test]
    fn only_what_is_needed_is_left() {
        assert_eq!(kept(100, 0, &[3, 71, 72]).0, [3, 71, 72]);
        assert_eq!(kept(7, 0, &[]).0, [] as [usize; 0]);
        assert_eq!(kept(0, 0, &[]), (Vec::new(), 0));
        assert_eq!(kept(5, 0, &[0, 1, 2, 3, 4]).0, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn as_many_are_left_as_the_grammar_needs() {
        assert_eq!(kept(3, 1, &[]).0.len(), 1);
        assert_eq!(kept(1, 1, &[]), (vec![0], 0));
        assert_eq!(kept(2, 2, &[]), (vec![0, 1], 0));
    }

    #[test]
    fn tries_grow_with_the_logarithm_of_the_list() {
        let (found, tries) = kept(1024, 0, &[500]);
        assert_eq!(found, [500]);
        assert!(tries < 40, "{tries}");
    }

    #[test]
    fn an_element_that_another_needs_goes_after_it() {
        // 0 is needed as long as 5 is there; 5 can go only when 3 has gone.
        let mut holds = |rest: &[usize]| {
            let has = |index| rest.contains(&index);
            Ok::<_, Infallible>(has(4) && (has(0) || !has(5)) && (has(5) || !has(3)))
        };
        assert_eq!(minimize(6, 0, &mut holds).unwrap(), [4]);
    }
}
