//! Where a hunk fits in a file. Its old lines have to be there, every one; they may have moved, and then the nearest
//! place is taken, unless another is as near or it is so far away that only the only one will do.

use crate::files::edit::has_crlf;
use crate::limits;
use abide_kernel::tool::{Hunk, Side};

/// The file after all hunks, or the first hunk that does not fit.
pub(super) fn apply(file: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, HunkMismatch> {
    let lines: Vec<&[u8]> = file.split_inclusive(|byte| *byte == b'\n').collect();
    let crlf = has_crlf(file);
    let mut after = Vec::with_capacity(file.len());
    let mut budget = limits::PATCH_COMPARISONS;
    // Where the last hunk ended, and how far from its stated place it was.
    let (mut from, mut moved) = (0_usize, 0_i64);
    for (number, hunk) in hunks.iter().enumerate() {
        let misfit = |why| HunkMismatch { number: number + 1, why };
        let stated = stated_line(hunk);
        let expected = usize::try_from(i64::try_from(stated).unwrap_or(i64::MAX).saturating_add(moved)).unwrap_or(0);
        // As given first; a model that leaves the carriage returns out means the same lines.
        let as_given = Lines::of_hunk(hunk, false);
        let mut found = as_given.find_in(&lines, from, expected, &mut budget);
        let mut used = as_given;
        if crlf && found == Err(MismatchKind::NotThere) {
            used = Lines::of_hunk(hunk, true);
            found = used.find_in(&lines, from, expected, &mut budget);
        }
        let at = found.map_err(misfit)?;
        moved = i64::try_from(at).unwrap_or_default() - i64::try_from(stated).unwrap_or_default();
        lines[from..at].iter().for_each(|line| after.extend_from_slice(line));
        used.new.iter().for_each(|line| after.extend_from_slice(line));
        from = at + used.old.len();
        if after.len() as u64 > limits::FILE_BYTES {
            return Err(misfit(MismatchKind::TooLarge));
        }
    }
    lines[from..].iter().for_each(|line| after.extend_from_slice(line));
    if after.len() as u64 > limits::FILE_BYTES {
        return Err(HunkMismatch { number: hunks.len(), why: MismatchKind::TooLarge });
    }
    Ok(after)
}

#[derive(Debug)]
pub(super) struct HunkMismatch {
    /// Of the hunk, counted from 1.
    pub number: usize,
    pub why: MismatchKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MismatchKind {
    NotThere,
    /// In several places, and nothing says which.
    Ambiguous,
    TooLarge,
}

/// The line a hunk says it begins at, counted from 0. One that only adds says the line it adds after.
fn stated_line(hunk: &Hunk) -> usize {
    let only_adds = hunk.lines.iter().all(|line| line.side == Side::New);
    let start = usize::try_from(hunk.old_start).unwrap_or(usize::MAX);
    if only_adds { start } else { start.saturating_sub(1) }
}

/// Both sides of a hunk.
struct Lines {
    old: Vec<Vec<u8>>,
    new: Vec<Vec<u8>>,
}

impl Lines {
    fn of_hunk(hunk: &Hunk, crlf: bool) -> Lines {
        let mut lines = Lines { old: Vec::new(), new: Vec::new() };
        for line in &hunk.lines {
            let text = match line.text.strip_suffix('\n') {
                Some(text) if crlf && !text.ends_with('\r') => format!("{text}\r\n"),
                Some(_) | None => line.text.clone(),
            };
            if line.side != Side::New {
                lines.old.push(text.clone().into_bytes());
            }
            if line.side != Side::Old {
                lines.new.push(text.into_bytes());
            }
        }
        lines
    }

    fn find_in(&self, file: &[&[u8]], from: usize, expected: usize, budget: &mut u64) -> Result<usize, MismatchKind> {
        if self.old.is_empty() {
            // Nothing says where but the number.
            return if (from..=file.len()).contains(&expected) { Ok(expected) } else { Err(MismatchKind::NotThere) };
        }
        let Some(last) = file.len().checked_sub(self.old.len()).filter(|last| *last >= from) else {
            return Err(MismatchKind::NotThere);
        };
        let mut fits = |at: usize| {
            (from..=last).contains(&at)
                && self.old.iter().zip(&file[at..]).all(|(wants, has)| {
                    *budget = budget.saturating_sub(1);
                    *budget > 0 && wants == has
                })
        };
        let expected = expected.clamp(from, last);
        if fits(expected) {
            return Ok(expected);
        }
        for distance in 1..=(last - from) {
            let before = expected.checked_sub(distance).filter(|at| fits(*at));
            let after = Some(expected + distance).filter(|at| fits(*at));
            let at = match (before, after) {
                (None, None) => continue,
                (Some(_), Some(_)) => return Err(MismatchKind::Ambiguous),
                (Some(at), None) | (None, Some(at)) => at,
            };
            let alone = distance <= limits::PATCH_MOVED_LINES || !(from..=last).any(|other| other != at && fits(other));
            // Who has given up looking does not know that it is the only one.
            return if alone && *budget > 0 { Ok(at) } else { Err(MismatchKind::Ambiguous) };
        }
        Err(MismatchKind::NotThere)
    }
}
