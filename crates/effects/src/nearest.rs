//! The known name that a misspelled one was meant to be.

/// The nearest of `known`, if it is near at all. Case, `_` and `-` count for nothing: `wait_for` means `WaitFor`.
pub(crate) fn nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain_name(name);
    // A page of text as a name is no misspelling, and the distance costs the product of the lengths.
    if name.len() > 64 {
        return None;
    }
    let near = |other: &'a str| {
        let other_plain = plain_name(other);
        let distance = edit_distance(&name, &other_plain);
        let allowed = (name.len().max(other_plain.len()) / 3).max(1);
        (distance <= allowed).then_some((distance, other))
    };
    known.into_iter().filter_map(near).min_by_key(|(distance, _)| *distance).map(|(_, other)| other)
}

fn plain_name(name: &str) -> Vec<char> {
    name.chars().filter(|c| !matches!(c, '_' | '-' | ' ')).flat_map(char::to_lowercase).take(65).collect()
}

/// The number of letters to insert, delete, replace, or swap with the next one.
fn edit_distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}
