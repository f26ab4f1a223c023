//! Durations, as options and the configuration spell them.

use std::time::Duration;

/// Reads `500ms`, `30s`, `5m`, `5min`, `1h`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration: expected a number and ms, s, m, min or h, such as 500ms or 5m");
    let digits = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 0.001,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| format!("`{text}` is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_usual_units() {
        for (text, milliseconds) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("5m", 300_000),
            ("5min", 300_000),
            ("5 min", 300_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        for wrong in ["", "5", "m", "-5m", "5d", "5M", "1..5s", "1e3s"] {
            assert!(parse_duration(wrong).unwrap_err().contains("ms, s, m, min or h"), "{wrong}");
        }
        assert_eq!(parse_duration(&format!("{}h", "9".repeat(30))), Err(format!("`{}h` is too long", "9".repeat(30))));
    }
}
