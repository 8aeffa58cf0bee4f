//! Takes the parts of an address out of what a server or the operating system says.

use super::settings::{Place, Settings};

/// Shorter values are taken out only where they stand in quotes: as a part of a word they are no secret.
const SHORT: usize = 4;

/// A text without the names, hosts and passwords of these settings.
pub(crate) fn redacted(settings: &Settings, text: String) -> String {
    let mut values = vec![settings.user.clone(), settings.database.clone()];
    values.extend(settings.options.clone());
    for target in &settings.targets {
        values.push(match &target.place {
            Place::Tcp(name, _) => name.clone(),
            Place::Unix(folder) => folder.display().to_string(),
        });
        values.extend(target.password.as_ref().map(|password| password.reveal().to_owned()));
    }
    without(text, values)
}

fn without(mut text: String, mut values: Vec<String>) -> String {
    values.retain(|value| !value.is_empty());
    values.sort_by_key(|value| std::cmp::Reverse(value.len()));
    for value in values {
        text = text.replace(&format!("\"{value}\""), "\"***\"");
        if value.len() >= SHORT {
            text = text.replace(&value, "***");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_from_quotes_and_longer_ones_from_everywhere() {
        let values = ["app", "shop", "CANARY-7f3a", "CANARY", ""].map(String::from).to_vec();
        let said = r#"application "app" of "shop": CANARY-7f3a at shop"#.to_owned();
        assert_eq!(without(said, values), r#"application "***" of "***": *** at ***"#);
    }
}
