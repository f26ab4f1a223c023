//! Work on many things at once, on threads whose stack is deep enough for the parser.

use crate::STACK_SIZE;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// Number of items below which threads cost more than they save.
const PARALLEL_FROM: usize = 8;

/// Does the work on each of many small things, and keeps their order.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, work: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    if items.len() < PARALLEL_FROM {
        return items.into_iter().map(work).collect();
    }
    on_threads(|| items.into_par_iter().map(work).collect())
}

/// Does the work on each of a few things of different size, the largest first, so that none is left for the end.
pub(crate) fn map_largest_first<T: Send, R: Send>(
    items: Vec<T>,
    size: impl Fn(&T) -> u64,
    work: impl Fn(usize, T) -> R + Send + Sync,
) -> Vec<R> {
    if items.len() < 2 {
        return items.into_iter().enumerate().map(|(at, item)| work(at, item)).collect();
    }
    let mut queue: Vec<(usize, T)> = items.into_iter().enumerate().collect();
    queue.sort_by_key(|(_, item)| std::cmp::Reverse(size(item)));
    let work = |(at, item)| (at, work(at, item));
    let mut done: Vec<(usize, R)> = on_threads(|| queue.into_iter().par_bridge().map(work).collect());
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Runs `work`, which can name items by index so that other threads run `in_background` on them when one is free.
pub(crate) fn with_helpers<T: Sync, R: Send>(
    items: &[T],
    in_background: impl Fn(&T) + Sync,
    work: impl FnOnce(&dyn Fn(usize)) -> R + Send,
) -> R {
    if items.len() < PARALLEL_FROM {
        return work(&|_| ());
    }
    let in_background = &in_background;
    on_threads(|| {
        rayon::scope(|scope| {
            work(&|index| {
                let item = &items[index];
                scope.spawn(move |_| in_background(item));
            })
        })
    })
}

/// The same threads for all work of the program: each has memory of its own, which the next work can use again.
fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static POOL: OnceLock<Option<ThreadPool>> = OnceLock::new();
    match POOL.get_or_init(|| ThreadPoolBuilder::new().stack_size(STACK_SIZE).build().ok()) {
        Some(pool) => pool.install(work),
        // Without threads of our own the present one has to do, as it does for few things.
        None => work(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_what_was_given() {
        let numbers: Vec<u64> = (0..100).collect();
        assert_eq!(
            map(numbers.clone(), |number| number * 2),
            numbers.iter().map(|number| number * 2).collect::<Vec<_>>()
        );
        let placed = map_largest_first(numbers.clone(), |number| *number, |at, number| (at as u64, number));
        assert!(placed.iter().zip(&numbers).all(|(placed, number)| *placed == (*number, *number)), "{placed:?}");
    }
}
