//! Medians and other ranks of times.

use std::time::Duration;

/// The least time that this percentage of all times does not exceed, and zero of none: of an even number, the lower one of the
/// two in the middle is the median; of twenty, the nineteenth is the 95th percentile.
pub(crate) fn rank(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    let place = (times.len() * percent).div_ceil(100);
    times.get(place.max(1) - 1).copied().unwrap_or_default()
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    rank(&mut times, 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_nearest_time() {
        let of = |count: u64, percent| {
            let mut times: Vec<Duration> = (1..=count).rev().map(Duration::from_secs).collect();
            rank(&mut times, percent).as_secs()
        };
        assert_eq!([of(0, 50), of(1, 50), of(3, 50), of(4, 50)], [0, 1, 2, 2]);
        assert_eq!([of(20, 95), of(21, 95), of(20, 100), of(20, 0)], [19, 20, 20, 1]);
    }
}
