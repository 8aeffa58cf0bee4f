//! Errors of one expansion, gathered so that a user sees all of them at once.

use syn::{Error, Result};

/// Both values, or the errors of both.
pub(crate) fn zip<A, B>(a: Result<A>, b: Result<B>) -> Result<(A, B)> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(mut first), Err(second)) => {
            first.combine(second);
            Err(first)
        }
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
    }
}

/// All values, or the errors of all.
pub(crate) fn all<T>(results: impl IntoIterator<Item = Result<T>>) -> Result<Vec<T>> {
    let mut all = Ok(Vec::new());
    for result in results {
        all = zip(all, result).map(|(mut values, value)| {
            values.push(value);
            values
        });
    }
    all
}

/// Nothing, or all of these errors.
pub(crate) fn none(errors: impl IntoIterator<Item = Error>) -> Result<()> {
    all(errors.into_iter().map(Err::<(), _>)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proc_macro2::Span;

    fn fault(text: &str) -> Error {
        Error::new(Span::call_site(), text)
    }

    fn texts(error: Error) -> Vec<String> {
        error.into_iter().map(|error| error.to_string()).collect()
    }

    #[test]
    fn the_errors_of_both_are_kept_in_order() {
        let both = zip::<(), ()>(Err(fault("a")), Err(fault("b")));
        assert_eq!(both.map_err(texts), Err(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!(zip::<_, ()>(Ok(1), Err(fault("b"))).map_err(texts), Err(vec!["b".to_owned()]));
        assert_eq!(zip(Ok(1), Ok(2)).map_err(texts), Ok((1, 2)));
    }

    #[test]
    fn all_values_or_all_errors() {
        assert_eq!(all([Ok(1), Ok(2)]).map_err(texts), Ok(vec![1, 2]));
        let mixed = all([Err(fault("a")), Ok(2), Err(fault("c"))]);
        assert_eq!(mixed.map_err(texts), Err(vec!["a".to_owned(), "c".to_owned()]));
        assert_eq!(none([]).map_err(texts), Ok(()));
    }
}
