//! Text of others as a person can trust it. A character that is not seen, or that changes how its
//! neighbours are seen, is shown as a mark such as `\u{202e}`: who writes a name, an argument or an
//! error must not be able to repaint a screen or to make it look like something else.

use std::fmt::Write;

/// The characters beside the controls that are not seen or that steer others: format characters
/// without a glyph, blank letters, separators of lines and paragraphs, and all code points that
/// Unicode sets aside for such characters (`Default_Ignorable_Code_Point`).
const HIDDEN: &[(char, char)] = &[
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180e}', '\u{180e}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{13430}', '\u{1343f}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e00ff}'),
    ('\u{e01f0}', '\u{e0fff}'),
];

/// Whether this character is not seen as what it is. Selectors of variants are no such characters:
/// after a letter they choose its form.
fn is_hidden(character: char) -> bool {
    let within = |(first, last): &(char, char)| (*first..=*last).contains(&character);
    character.is_control() || HIDDEN.iter().any(within)
}

/// Whether this character chooses a form of the one before it. Nothing is seen of a second one.
fn is_selector(character: char) -> bool {
    matches!(
        character,
        '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}'
    )
}

/// Whether this character is seen and can have a joiner beside it: emoji and the scripts that need
/// joiners lie beyond ASCII, so that no joiner hides in a plain name.
fn joins(character: Option<char>) -> bool {
    character.is_some_and(|character| !character.is_ascii() && !is_hidden(character))
}

/// Text that is read: line breaks, tabs and the joiners of emoji and of scripts stay.
pub fn readable(text: &str) -> String {
    marked(text, escape, |character, (before, after)| match character {
        '\n' | '\t' => true,
        '\u{200c}' | '\u{200d}' => joins(before) && joins(after),
        _ => false,
    })
}

/// Text by which a person decides, on one line: nothing stays.
pub fn exposed(text: &str) -> String {
    marked(text, escape, |_, _| false)
}

/// JSON by which a person decides. It stays JSON, and the same: its marks are its own escapes.
pub fn exposed_json(json: &str) -> String {
    // Outside of its strings only the line breaks of its layout are such characters.
    marked(json, escape_json, |character, _| character == '\n')
}

/// The text with marks for what is hidden, unless it stays between its neighbours.
fn marked(
    text: &str,
    mark: fn(&mut String, char),
    stays: impl Fn(char, (Option<char>, Option<char>)) -> bool,
) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let is_seen = if is_selector(character) {
            before.is_some_and(|before| !is_selector(before) && !is_hidden(before))
        } else {
            !is_hidden(character) || stays(character, (before, rest.peek().copied()))
        };
        if is_seen {
            shown.push(character);
        } else {
            mark(&mut shown, character);
        }
        before = Some(character);
    }
    shown
}

fn escape(shown: &mut String, character: char) {
    shown.extend(character.escape_default());
}

fn escape_json(shown: &mut String, character: char) {
    for unit in character.encode_utf16(&mut [0; 2]) {
        // Writing into a text cannot fail.
        let _ = write!(shown, "\\u{unit:04x}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that must not be printed as it is, with what it could do.
    const UNSAFE: &[(u32, u32, &str)] = &[
        (0x00, 0x08, "controls"),
        (0x0b, 0x1f, "controls, escape among them"),
        (0x7f, 0x9f, "delete and the second set of controls"),
        (0xad, 0xad, "soft hyphen"),
        (0x034f, 0x034f, "grapheme joiner"),
        (0x061c, 0x061c, "direction"),
        (0x115f, 0x1160, "blank letters"),
        (0x17b4, 0x17b5, "vowels that are not seen"),
        (0x180e, 0x180e, "separator of vowels"),
        (0x200b, 0x200f, "zero width, directions"),
        (0x2028, 0x2029, "line and paragraph"),
        (0x202a, 0x202e, "embeddings and overrides"),
        (0x2060, 0x206f, "zero width, isolates"),
        (0x3164, 0x3164, "blank letter"),
        (0xfeff, 0xfeff, "byte order mark"),
        (0xffa0, 0xffa0, "blank letter"),
        (0xfff9, 0xfffb, "annotations"),
        (0x1bca0, 0x1bca3, "shorthand"),
        (0x1d173, 0x1d17a, "music"),
        (0xe0000, 0xe007f, "tags"),
    ];

    #[test]
    fn invisible_and_bidirectional_characters_are_marked() {
        for (first, last, what) in UNSAFE {
            for character in (*first..=*last).filter_map(char::from_u32) {
                let mark: String = character.escape_default().collect();
                let text = format!("a{character}b");
                assert_eq!(readable(&text), format!("a{mark}b"), "{what}: {mark}");
                assert_eq!(exposed(&text), format!("a{mark}b"), "{what}: {mark}");
                assert!(readable(&text).is_ascii() && exposed_json(&text).len() > 3, "{mark}");
            }
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for text in
            ["naïve café", "日本語", "שלום", "سلام", "a\u{301}", "👍🏽", "♥\u{fe0f}", "葛\u{e0100}"]
        {
            assert_eq!((readable(text), exposed(text)), (text.to_owned(), text.to_owned()));
        }
        // The joiners of a family, of Persian and of Hindi; where someone decides they are marked.
        for text in ["👩\u{200d}👧", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}روم", "क्\u{200d}ष"]
        {
            assert_eq!(readable(text), text);
            assert!(exposed(text).contains("\\u{200"), "{text}");
        }
        assert_eq!(readable("a\u{200d}b \u{200d}ب"), "a\\u{200d}b \\u{200d}ب");
        assert_eq!(readable("two\n\tlines"), "two\n\tlines");
        assert_eq!(exposed("two\n\tlines"), "two\\n\\tlines");
    }

    #[test]
    fn a_second_variation_selector_is_marked() {
        assert_eq!(readable("a\u{fe0f}\u{fe01}\u{e0101}b"), "a\u{fe0f}\\u{fe01}\\u{e0101}b");
        assert_eq!(exposed("\u{fe0f}"), "\\u{fe0f}");
    }

    #[test]
    fn escaping_keeps_json_equal() {
        let value = serde_json::json!({"to": "alice\u{202e}moc\u{200b}", "\u{e0041}": "\u{9b}2J"});
        for json in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let shown = exposed_json(&json);
            assert!(shown.is_ascii(), "{shown}");
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
        }
        assert_eq!(exposed_json("\"\u{202e}\u{e0041}\""), "\"\\u202e\\udb40\\udc41\"");
    }
}
