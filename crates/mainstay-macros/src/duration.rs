//! Durations as options write them: `"500ms"`, `"30s"`, `"2m"`, `"1h"`, `"7d"`.

use std::time::Duration;

/// The units, each in milliseconds.
const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// Reads a whole number and a unit. The error says what to write.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor);
    let (Some(factor), false) = (factor, number.is_empty()) else {
        return Err(format!("{text:?} is no duration: write a whole number and ms, s, m, h or d, such as \"500ms\""));
    };
    let millis = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    millis.map(Duration::from_millis).ok_or_else(|| format!("{text:?} is too long"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        let seconds = |text| parse(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("500ms"), Ok(0.5));
        assert_eq!(seconds("0s"), Ok(0.0));
        assert_eq!(seconds("30s"), Ok(30.0));
        assert_eq!(seconds("2m"), Ok(120.0));
        assert_eq!(seconds("1h"), Ok(3_600.0));
        assert_eq!(seconds("7d"), Ok(604_800.0));
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "5", "s", "5 s", " 5s", "1.5s", "-1s", "5S", "5sec", "1h30m", "٣s"] {
            let error = parse(text).expect_err(text);
            assert!(error.contains("write a whole number and ms, s, m, h or d"), "{error}");
        }
    }

    #[test]
    fn one_that_does_not_fit_is_refused() {
        for text in ["99999999999999999999ms", "18446744073709551615s"] {
            assert_eq!(parse(text), Err(format!("{text:?} is too long")));
        }
        assert!(parse("18446744073709551615ms").is_ok());
    }
}
