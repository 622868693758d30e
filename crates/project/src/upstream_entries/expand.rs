//! Variables in the texts of upstreams: `${NAME}`, `${NAME:-default}` and `${env:NAME}`, as the
//! files of all clients write them. A file can be shown and shared; what it names cannot.

use crate::settings::Text;
use kernel::definition::plan::mistake::Mistake;
use std::path::Path;

/// Looks a variable up; nothing where it is not set.
pub type Variables<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Keys of our own, which no upstream is given.
const OURS: [&str; 3] = ["WAYPOST_API_KEY", "WAYPOST_ADMIN_KEY", "WAYPOST_SECRET_KEY"];

/// What texts are expanded with.
pub struct ExpandContext<'a> {
    /// The project's folder.
    pub folder: &'a Path,
    /// Looks a variable of the environment up.
    pub variables: &'a Variables<'a>,
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
enum Piece<'t> {
    Plain(&'t str),
    /// A variable, and what holds where it is not set or empty.
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
    /// What an editor would ask a person for.
    Input(&'t str),
    /// The project's folder.
    Folder,
    /// The home folder of the user who runs us.
    Home,
}

/// The text with what its variables are set to.
pub fn expanded(text: &Text, around: &ExpandContext<'_>) -> Result<String, Mistake> {
    let mut whole = String::new();
    for piece in pieces(&text.text) {
        match piece {
            Piece::Plain(plain) => whole.push_str(plain),
            Piece::Variable { name, default } => {
                let value = variable(name, default, around).map_err(|why| text.mistake(why))?;
                whole.push_str(&value);
            }
            Piece::Input(id) => return Err(text.mistake(asked_for(id))),
            Piece::Folder => whole.push_str(&around.folder.to_string_lossy()),
            Piece::Home => {
                let home = variable("HOME", None, around).map_err(|why| text.mistake(why))?;
                whole.push_str(&home);
            }
        }
    }
    Ok(whole)
}

/// Whether variables stand in it.
pub fn has_variables(text: &str) -> bool {
    pieces(text).iter().any(|piece| !matches!(piece, Piece::Plain(_)))
}

/// Whether a variable that someone sets stands in it.
pub fn names_variable(text: &str) -> bool {
    pieces(text).iter().any(|piece| matches!(piece, Piece::Variable { .. }))
}

/// The same text with a variable for everything that an editor would ask for, and the names of
/// those variables.
pub fn without_inputs(text: &str) -> (String, Vec<String>) {
    let mut whole = String::new();
    let mut names = Vec::new();
    let mut rest = text;
    while let Some((before, input)) = rest.split_once("${input:")
        && let Some((id, after)) = input.split_once('}')
    {
        let name = variable_for(id);
        whole.push_str(before);
        whole.push_str(&format!("${{{name}}}"));
        names.push(name);
        rest = after;
    }
    whole.push_str(rest);
    (whole, names)
}

fn variable(
    name: &str,
    default: Option<&str>,
    around: &ExpandContext<'_>,
) -> Result<String, Mistake> {
    if OURS.contains(&name) {
        let what = format!("`{name}` is a key of our own, and no upstream is given it");
        return Err(Mistake::error(what).hint("use a variable of another name"));
    }
    match ((around.variables)(name), default) {
        // An empty one has a default too, as in a shell.
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            let hint = format!("set it, or write `${{{name}:-..}}` with what holds without it");
            Err(Mistake::error(format!("the variable `{name}` is not set")).hint(hint))
        }
    }
}

fn asked_for(id: &str) -> Mistake {
    let name = variable_for(id);
    Mistake::error(format!("`${{input:{id}}}` is asked for by an editor, and a server cannot ask"))
        .hint(format!("write `${{{name}}}`, and set the variable `{name}`"))
}

/// The variable that stands for what an editor asks for: `GITHUB_TOKEN` for `github-token`.
fn variable_for(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(letter).collect();
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut plain_from = 0;
    let mut at = 0;
    while let Some(begin) = text[at..].find("${").map(|place| at + place) {
        let inner_from = begin + 2;
        let Some(end) = text[inner_from..].find('}').map(|place| inner_from + place) else { break };
        at = inner_from;
        // What is no reference, such as `${1%x}` of a shell, stays as it is.
        if let Some(piece) = reference(&text[inner_from..end]) {
            pieces.push(Piece::Plain(&text[plain_from..begin]));
            pieces.push(piece);
            at = end + 1;
            plain_from = at;
        }
    }
    pieces.push(Piece::Plain(&text[plain_from..]));
    pieces.retain(|piece| *piece != Piece::Plain(""));
    pieces
}

fn reference(inner: &str) -> Option<Piece<'_>> {
    match inner {
        "workspaceFolder" => return Some(Piece::Folder),
        "userHome" => return Some(Piece::Home),
        _ => {}
    }
    if let Some(id) = inner.strip_prefix("input:") {
        return Some(Piece::Input(id));
    }
    let named = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, default) = match named.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (named, None),
    };
    is_variable(name).then_some(Piece::Variable { name, default })
}

fn is_variable(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layer::Location;

    fn told(text: &str) -> Result<String, String> {
        let variables = |name: &str| match name {
            "TOKEN" => Some("abc".to_owned()),
            "EMPTY" => Some(String::new()),
            "HOME" => Some("/home/ada".to_owned()),
            "WAYPOST_ADMIN_KEY" => Some("hunter2".to_owned()),
            _ => None,
        };
        let around = ExpandContext { folder: Path::new("/shop"), variables: &variables };
        let place = Location { file: ".mcp.json".into(), line: 3, column: 9 };
        let text = Text { text: text.to_owned(), place };
        expanded(&text, &around).map_err(|mistake| mistake.to_string())
    }

    #[test]
    fn variables_are_expanded_as_clients_write_them() {
        for (text, expected) in [
            ("Bearer ${TOKEN}", "Bearer abc"),
            ("${env:TOKEN}/${TOKEN}", "abc/abc"),
            ("${NONE:-x y}|${EMPTY:-x}|${EMPTY}|${NONE:-}", "x y|x||"),
            ("${workspaceFolder}/a ${userHome}", "/shop/a /home/ada"),
            ("$TOKEN $$ ${ ${1%x} {TOKEN} ${}", "$TOKEN $$ ${ ${1%x} {TOKEN} ${}"),
            ("${1${TOKEN}}", "${1abc}"),
            ("ü${TOKEN}ü", "üabcü"),
            ("", ""),
        ] {
            assert_eq!(told(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn failed_expansions_are_reported_with_their_position() {
        assert_eq!(
            told("a ${GITHUB_TOKEN}").unwrap_err(),
            ".mcp.json:3:9: error: the variable `GITHUB_TOKEN` is not set; \
             hint: set it, or write `${GITHUB_TOKEN:-..}` with what holds without it"
        );
        assert_eq!(
            told("${input:github-token}").unwrap_err(),
            ".mcp.json:3:9: error: `${input:github-token}` is asked for by an editor, and a server \
             cannot ask; hint: write `${GITHUB_TOKEN}`, and set the variable `GITHUB_TOKEN`"
        );
        for name in OURS {
            let ours = told(&format!("${{{name}:-}}")).unwrap_err();
            assert!(ours.contains("a key of our own") && !ours.contains("hunter2"), "{ours}");
        }
    }

    #[test]
    fn an_editors_input_becomes_a_variable() {
        let (text, names) = without_inputs("a ${input:api-key} ${B} ${input:2nd}");
        assert_eq!(text, "a ${API_KEY} ${B} ${_2ND}");
        assert_eq!(names, ["API_KEY", "_2ND"]);
        assert_eq!(without_inputs("${input:x").0, "${input:x");
        assert!(has_variables("x${A}") && !has_variables("x$A"));
        assert!(names_variable("x${A:-}") && !names_variable("${workspaceFolder}"));
    }
}
