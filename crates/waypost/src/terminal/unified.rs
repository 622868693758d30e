//! Differences between two texts, in the format of `diff -u`.

use similar::{DiffOp, TextDiff};
use std::ops::Range;

/// How many lines around a change are shown.
const AROUND: usize = 3;

/// A text and the name under which its changes are shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TitledText<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

/// The changes from one text to another; nothing where there are none.
pub(crate) fn unified(old: TitledText<'_>, new: TitledText<'_>) -> Option<String> {
    let (old_lines, new_lines): (Vec<&str>, Vec<&str>) =
        (old.text.lines().collect(), new.text.lines().collect());
    let diff = TextDiff::from_slices(&old_lines, &new_lines);
    let mut parts = vec![format!("--- {}", old.name), format!("+++ {}", new.name)];
    for hunk in diff.grouped_ops(AROUND) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        // `similar` would write `1` where we write `1,1`.
        let place = |range: fn(&DiffOp) -> Range<usize>| {
            let (begin, end) = (range(first).start, range(last).end);
            // Of nothing it is the place after which it would be.
            format!("{},{}", begin + usize::from(end > begin), end - begin)
        };
        parts.push(format!("@@ -{} +{} @@", place(DiffOp::old_range), place(DiffOp::new_range)));
        let changes = hunk.iter().flat_map(|op| diff.iter_changes(op));
        parts.extend(changes.map(|change| format!("{}{}", change.tag(), change.value())));
    }
    (parts.len() > 2).then(|| parts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(old: &str, new: &str) -> Option<String> {
        unified(TitledText { name: "a", text: old }, TitledText { name: "b", text: new })
    }

    fn diff(old: &str, new: &str) -> String {
        changes(old, new).unwrap_or_default()
    }

    #[test]
    fn changes_are_shown_with_context_lines() {
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
    fn equal_texts_have_no_difference_and_an_empty_one_is_all_new() {
        assert_eq!(changes("x\n", "x"), None, "the last line break does not count");
        assert_eq!(changes("", ""), None);
        assert_eq!(diff("", "x\n"), "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+x");
    }

    #[test]
    fn texts_with_little_in_common_are_compared_in_bounded_time() {
        let (old, new) = ("a\n".repeat(50_000), "b\n".repeat(50_000));
        assert_eq!(diff(&old, &new).lines().count(), 100_003);
    }
}
