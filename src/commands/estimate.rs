//! How many bytes a batch has, for the choice between CPU and GPU before it begins.

/// Inputs whose sizes are looked at.
const LOOKED_AT: usize = 16;

/// Bytes of all `inputs`: they are taken to be as large as the first few are on average by `bytes`. Those of unknown size,
/// such as pipes, are not counted; where no size is known, all count as empty.
pub fn bytes_of_all<T>(inputs: &[T], bytes: impl Fn(&T) -> Option<u64>) -> f64 {
    let known: Vec<u64> = inputs.iter().take(LOOKED_AT).filter_map(bytes).collect();
    known.iter().sum::<u64>() as f64 / known.len().max(1) as f64 * inputs.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_unknown_size_are_as_large_as_the_others() {
        assert_eq!(bytes_of_all(&[(); 3], |()| None), 0.0);
        let sizes: Vec<Option<u64>> = [Some(10), None, Some(20)].repeat(5);
        assert_eq!(bytes_of_all(&sizes, |size| *size), 15.0 * 15.0);
    }
}
