//! Two texts line by line, as `diff -u` shows it.

/// How many lines around a change are shown.
const AROUND: usize = 3;
/// Parts that would take more cells than this are shown as removed and added whole.
const CELLS_MAX: usize = 4_000_000;

const SAME: char = ' ';
const GONE: char = '-';
const NEW: char = '+';

/// A line, and by its mark what becomes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Line<'t> {
    mark: char,
    text: &'t str,
}

/// A text and the name under which its changes are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Titled<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

/// The changes from one text to another; nothing where there are none.
pub(crate) fn unified(old: Titled<'_>, new: Titled<'_>) -> Option<String> {
    let old_lines: Vec<&str> = old.text.lines().collect();
    let new_lines: Vec<&str> = new.text.lines().collect();
    let lines = compared(&old_lines, &new_lines);
    let mut parts = vec![format!("--- {}", old.name), format!("+++ {}", new.name)];
    for (begin, end) in hunks(&lines) {
        let place_without = |mark: char| {
            let of = |lines: &[Line<'_>]| lines.iter().filter(|line| line.mark != mark).count();
            let count = of(&lines[begin..end]);
            // Of nothing it is the place after which it would be.
            format!("{},{count}", of(&lines[..begin]) + usize::from(count > 0))
        };
        parts.push(format!("@@ -{} +{} @@", place_without(NEW), place_without(GONE)));
        let shown = |line: &Line<'_>| format!("{}{}", line.mark, line.text);
        parts.extend(lines[begin..end].iter().map(shown));
    }
    (parts.len() > 2).then(|| parts.join("\n"))
}

/// Where changes are, with the lines around them; what touches is one.
fn hunks(lines: &[Line<'_>]) -> Vec<(usize, usize)> {
    let mut hunks: Vec<(usize, usize)> = Vec::new();
    let changed = |(_, line): &(usize, &Line<'_>)| line.mark != SAME;
    for (index, _) in lines.iter().enumerate().filter(changed) {
        let begin = index.saturating_sub(AROUND);
        let end = (index + AROUND + 1).min(lines.len());
        match hunks.last_mut() {
            Some((_, last)) if begin <= *last => *last = end,
            _ => hunks.push((begin, end)),
        }
    }
    hunks
}

/// All lines of both texts; what they begin and end with alike needs no search.
fn compared<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let before = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let old_rest = &old[before..];
    let new_rest = &new[before..];
    let backwards = old_rest.iter().rev().zip(new_rest.iter().rev());
    let after = backwards.take_while(|(old, new)| old == new).count();
    let same = |&text: &&'t str| Line { mark: SAME, text };
    let mut lines: Vec<Line<'t>> = old[..before].iter().map(same).collect();
    lines
        .extend(searched(&old_rest[..old_rest.len() - after], &new_rest[..new_rest.len() - after]));
    lines.extend(old_rest[old_rest.len() - after..].iter().map(same));
    lines
}

/// The longest common lines stay, the others go and come.
fn searched<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<Line<'t>> {
    let width = new.len() + 1;
    let cells = (old.len() + 1).saturating_mul(width);
    let gone = |&text: &&'t str| Line { mark: GONE, text };
    let come = |&text: &&'t str| Line { mark: NEW, text };
    if cells > CELLS_MAX {
        return old.iter().map(gone).chain(new.iter().map(come)).collect();
    }
    // How many lines are common from here on.
    let mut common = vec![0_u32; cells];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            common[i * width + j] = if old[i] == new[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let mut i = 0;
    let mut j = 0;
    let mut lines = Vec::with_capacity(old.len() + new.len());
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            lines.push(Line { mark: SAME, text: old[i] });
            (i, j) = (i + 1, j + 1);
        } else if common[(i + 1) * width + j] >= common[i * width + j + 1] {
            lines.push(gone(&old[i]));
            i += 1;
        } else {
            lines.push(come(&new[j]));
            j += 1;
        }
    }
    lines.extend(old[i..].iter().map(gone));
    lines.extend(new[j..].iter().map(come));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(old: &str, new: &str) -> Option<String> {
        unified(Titled { name: "a", text: old }, Titled { name: "b", text: new })
    }

    fn diff(old: &str, new: &str) -> String {
        changes(old, new).unwrap_or_default()
    }

    #[test]
    fn what_changed_is_shown_with_what_is_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "1\n2\n3\n4\nfive\n6\n7\n8\n9\n10\n11\n12\n13\n";
        assert_eq!(
            diff(old, new),
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n\
             @@ -10,3 +10,4 @@\n 10\n 11\n 12\n+13"
        );
        assert_eq!(diff("a\nb\nc\n", "a\nc\n"), "--- a\n+++ b\n@@ -1,3 +1,2 @@\n a\n-b\n c");
        assert_eq!(diff("x\ny\n", "y\nz\n"), "--- a\n+++ b\n@@ -1,2 +1,2 @@\n-x\n y\n+z");
    }

    #[test]
    fn nothing_is_no_difference_and_all_of_nothing_is_one() {
        assert_eq!(changes("x\n", "x"), None, "the last line break does not count");
        assert_eq!(changes("", ""), None);
        assert_eq!(diff("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x");
    }

    #[test]
    fn texts_that_have_little_in_common_are_compared_in_time() {
        let old = "a\n".repeat(50_000);
        let new = "b\n".repeat(50_000);
        assert_eq!(diff(&old, &new).lines().count(), 100_003);
    }
}
