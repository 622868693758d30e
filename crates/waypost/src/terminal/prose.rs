//! What an agent says, at a terminal, as it comes: lines end between words, and `**bold**`, code
//! and headings of Markdown look like it. Code blocks stay as they are. In a pipe nothing changes.

use crate::terminal::screen::Screen;
use unicode_width::UnicodeWidthChar;

const BOLD: &str = "\u{1b}[1m";
const CODE: &str = "\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";
/// A line that begins so opens or closes a block of code.
const FENCE: &str = "```";

/// A text that is written piece by piece. What is given to it must be safe to print.
#[derive(Debug)]
pub(crate) struct Prose {
    screen: Screen,
    /// How much of the present line is taken.
    column: usize,
    /// Blanks that come before the next word, if it is on the same line.
    blanks: usize,
    /// The word that is not whole yet, as it will be printed, and its width.
    word: String,
    word_width: usize,
    /// The marks at the begin of the line, as long as it is open what they mean.
    opening: Option<String>,
    has_star: bool,
    is_bold: bool,
    is_code: bool,
    /// Whether the present line, or the block that it is in, stays as it is.
    is_fence: bool,
    is_block: bool,
}

impl Prose {
    /// Nothing was written yet.
    pub(crate) fn new(screen: Screen) -> Self {
        Self {
            screen,
            column: 0,
            blanks: 0,
            word: String::new(),
            word_width: 0,
            opening: Some(String::new()),
            has_star: false,
            is_bold: false,
            is_code: false,
            is_fence: false,
            is_block: false,
        }
    }

    /// What can be printed of the text up to this piece of it.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let Some(width) = self.screen.width else { return piece.to_owned() };
        let mut shown = String::new();
        for letter in piece.chars() {
            match letter {
                '\n' => self.end_line(&mut shown, width),
                _ => self.take(letter, &mut shown, width),
            }
        }
        shown
    }

    /// The rest of it; the next piece begins a new text.
    pub(crate) fn end(&mut self) -> String {
        let Some(width) = self.screen.width else { return String::new() };
        let mut shown = String::new();
        self.resolve(None);
        self.end_word(&mut shown, width);
        if self.is_bold || self.is_code {
            shown.push_str(PLAIN);
        }
        *self = Self::new(self.screen);
        shown
    }

    fn end_line(&mut self, shown: &mut String, width: usize) {
        self.resolve(None);
        self.end_word(shown, width);
        if self.is_bold || self.is_code {
            shown.push_str(PLAIN);
        }
        shown.push('\n');
        if self.is_fence {
            self.is_block = !self.is_block;
        }
        let is_block = self.is_block;
        *self = Self { is_block, ..Self::new(self.screen) };
    }

    fn take(&mut self, letter: char, shown: &mut String, width: usize) {
        if let Some(opening) = &mut self.opening
            && (letter == '#' || letter == '`')
            && opening.chars().all(|mark| mark == letter)
        {
            opening.push(letter);
            return;
        }
        if self.resolve(Some(letter)) {
            return;
        }
        if self.is_fence || self.is_block {
            return self.add(letter);
        }
        match letter {
            ' ' => {
                self.end_word(shown, width);
                self.blanks += 1;
            }
            '*' if self.screen.has_colour && self.has_star => {
                self.has_star = false;
                self.is_bold = !self.is_bold;
                self.restyle();
            }
            '*' if self.screen.has_colour => self.has_star = true,
            '`' if self.screen.has_colour => {
                self.end_star();
                self.is_code = !self.is_code;
                self.restyle();
            }
            letter => {
                self.end_star();
                self.add(letter);
            }
        }
    }

    /// Finds out what the marks at the begin of the line mean, now that this letter follows them.
    /// Whether the letter is part of them.
    fn resolve(&mut self, next: Option<char>) -> bool {
        let Some(opening) = self.opening.take() else { return false };
        if opening.starts_with(FENCE) {
            self.is_fence = true;
        } else if opening.starts_with('#') && next == Some(' ') && self.may_style() {
            self.is_bold = true;
            self.restyle();
            return true;
        } else if opening == "`" && self.may_style() {
            self.is_code = true;
            self.restyle();
            return false;
        }
        opening.chars().for_each(|mark| self.add(mark));
        false
    }

    fn may_style(&self) -> bool {
        self.screen.has_colour && !self.is_block
    }

    /// A star that stands alone is one.
    fn end_star(&mut self) {
        if std::mem::take(&mut self.has_star) {
            self.add('*');
        }
    }

    fn add(&mut self, letter: char) {
        self.word.push(letter);
        self.word_width += letter.width().unwrap_or_default();
    }

    fn restyle(&mut self) {
        self.word.push_str(PLAIN);
        if self.is_bold {
            self.word.push_str(BOLD);
        }
        if self.is_code {
            self.word.push_str(CODE);
        }
    }

    /// Prints the word, on a new line where it does not fit into this one.
    fn end_word(&mut self, shown: &mut String, width: usize) {
        self.end_star();
        if self.word.is_empty() {
            return;
        }
        let is_kept = self.is_fence || self.is_block;
        let end = self.column + self.blanks + self.word_width;
        if end > width && self.column > 0 && !is_kept {
            shown.push('\n');
            self.column = 0;
        } else {
            shown.push_str(&" ".repeat(self.blanks));
            self.column += self.blanks;
        }
        shown.push_str(&std::mem::take(&mut self.word));
        self.column += std::mem::take(&mut self.word_width);
        self.blanks = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(screen: Screen, pieces: &[&str]) -> String {
        let mut prose = Prose::new(screen);
        let mut all: String = pieces.iter().map(|piece| prose.push(piece)).collect();
        all.push_str(&prose.end());
        all
    }

    const PLAIN_TERMINAL: Screen = Screen { width: Some(20), has_colour: false };
    const COLOURED: Screen = Screen { width: Some(20), has_colour: true };

    #[test]
    fn lines_end_between_words() {
        let pieces = ["The meeting with 田中さん", " is moved to Mon", "day.\n\n  - one"];
        let expected = "The meeting with\n田中さん is moved to\nMonday.\n\n  - one";
        assert_eq!(shown(PLAIN_TERMINAL, &pieces), expected);
        let long = "https://example.com/a/long/address";
        assert_eq!(shown(PLAIN_TERMINAL, &[long]), long, "a word is never cut");
    }

    #[test]
    fn a_pipe_gets_the_text_unchanged() {
        let text = "**a** `b`\n# c\n";
        assert_eq!(shown(Screen::PIPE, &[text]), text);
        assert_eq!(shown(PLAIN_TERMINAL, &[text]), text, "without colours marks stay");
    }

    #[test]
    fn light_markdown_is_styled() {
        let bold = format!("{PLAIN}{BOLD}a b{PLAIN} 2 * 3");
        assert_eq!(shown(COLOURED, &["*", "*a b** 2 * 3"]), bold);
        assert_eq!(shown(COLOURED, &["run `x`"]), format!("run {PLAIN}{CODE}x{PLAIN}"));
        assert_eq!(shown(COLOURED, &["# Head\nx"]), format!("{PLAIN}{BOLD}Head{PLAIN}\nx"));
        assert_eq!(shown(COLOURED, &["#1 is"]), "#1 is");
    }

    #[test]
    fn a_code_block_is_printed_unchanged() {
        let text = "```sh\necho  **a**   # a long line of code\n```\nb";
        assert_eq!(shown(COLOURED, &[text]), text);
    }
}
