//! Components: what stands between `BEGIN:VEVENT` and `END:VEVENT`, and in what it stands.

use super::line::{Property, unfolded};
use std::fmt;

/// Deeper than any program nests them.
const DEPTH_MAX: usize = 8;

/// One component.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Component {
    /// What it is: `VEVENT`.
    name: String,
    /// What it says, in the order of its file.
    pub(crate) properties: Vec<Property>,
    /// What stands in it, in the order of its file.
    pub(crate) components: Vec<Component>,
}

/// Why a file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    line: usize,
    what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Component {
    /// An empty component of this name.
    pub(crate) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Whether this is its name, in whichever case.
    pub(crate) fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }

    /// The first property of this name.
    pub(crate) fn property(&self, name: &str) -> Option<&Property> {
        self.properties.iter().find(|property| property.is(name))
    }

    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.property(name).map(|property| property.value.as_str())
    }

    /// Puts a property in the place of all of this name, or at the end.
    pub(crate) fn put(&mut self, name: &str, property: Property) {
        let at = self.properties.iter().position(|property| property.is(name));
        self.properties.retain(|property| !property.is(name));
        self.properties.insert(at.unwrap_or(self.properties.len()), property);
    }

    /// Takes all properties of this name out.
    pub(crate) fn remove(&mut self, name: &str) {
        self.properties.retain(|property| !property.is(name));
    }

    /// The same with one more property.
    #[must_use]
    pub(crate) fn with(mut self, head: impl Into<String>, value: impl Into<String>) -> Self {
        self.properties.push(Property::new(head, value));
        self
    }

    /// The calendar that a file holds.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, Broken> {
        let mut open: Vec<Component> = Vec::new();
        let mut whole: Option<Component> = None;
        let mut last = 1;
        for (number, line) in unfolded(bytes) {
            last = number;
            let broken = |what: String| Broken { line: number, what };
            let line = String::from_utf8(line).map_err(|_| broken("it is no UTF-8".to_owned()))?;
            let property =
                Property::read(&line).ok_or_else(|| broken("it is not `NAME:value`".to_owned()))?;
            if whole.is_some() {
                return Err(broken("there is text after the end of the calendar".to_owned()));
            }
            if property.is("BEGIN") {
                if open.len() >= DEPTH_MAX {
                    return Err(broken(format!("more than {DEPTH_MAX} components in each other")));
                }
                open.push(Component::new(property.value.trim()));
            } else if property.is("END") {
                let ended = open.pop().filter(|ended| ended.is(property.value.trim()));
                let ended = ended.ok_or_else(|| {
                    broken(format!("`END:{}` ends nothing that began", property.value))
                })?;
                match open.last_mut() {
                    Some(around) => around.components.push(ended),
                    None => whole = Some(ended),
                }
            } else {
                let inside = open.last_mut().ok_or_else(|| {
                    broken("it is outside of `BEGIN:VCALENDAR` and its end".to_owned())
                })?;
                inside.properties.push(property);
            }
        }
        let broken = |what: &str| Broken { line: last, what: what.to_owned() };
        let whole = whole.ok_or_else(|| broken("the file ends before its calendar does"))?;
        if whole.is("VCALENDAR") { Ok(whole) } else { Err(broken("it is no `VCALENDAR`")) }
    }

    /// Writes it with all that stands in it.
    pub(crate) fn write(&self, out: &mut String) {
        Property::new("BEGIN", self.name.as_str()).write(out);
        for property in &self.properties {
            property.write(out);
        }
        for component in &self.components {
            component.write(out);
        }
        Property::new("END", self.name.as_str()).write(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\nX-THEIRS;A=\"b:c\":d\r\n\
                        BEGIN:VEVENT\r\nUID:1\r\nBEGIN:VALARM\r\nACTION:AUDIO\r\nEND:VALARM\r\n\
                        END:VEVENT\r\nBEGIN:VTODO\r\nUID:2\r\nEND:VTODO\r\nEND:VCALENDAR\r\n";

    fn told(text: &str) -> String {
        Component::read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_file_of_another_program_comes_out_as_it_was() {
        let read = Component::read(FILE.as_bytes()).unwrap();
        let mut written = String::new();
        read.write(&mut written);
        assert_eq!(written, FILE);
        assert_eq!(read.components[0].value("uid"), Some("1"));
    }

    #[test]
    fn a_property_keeps_its_place() {
        let mut component = Component::new("VEVENT").with("A", "1").with("B", "2").with("a", "3");
        component.put("A", Property::new("A", "4"));
        component.put("C", Property::new("C", "5"));
        component.remove("B");
        let mut written = String::new();
        component.write(&mut written);
        assert_eq!(written, "BEGIN:VEVENT\r\nA:4\r\nC:5\r\nEND:VEVENT\r\n");
    }

    #[test]
    fn what_is_broken_is_told_with_its_line() {
        assert_eq!(told(""), "line 1: the file ends before its calendar does");
        assert_eq!(told("BEGIN:VEVENT\nEND:VEVENT\n"), "line 2: it is no `VCALENDAR`");
        assert_eq!(told("BEGIN:VCALENDAR\n\nhello\n"), "line 3: it is not `NAME:value`");
        assert_eq!(
            told("BEGIN:VCALENDAR\nBEGIN:VEVENT\nEND:VCALENDAR\n"),
            "line 3: `END:VCALENDAR` ends nothing that began"
        );
        assert!(told("A:1\n").contains("outside of `BEGIN:VCALENDAR`"));
        assert!(told(&format!("{FILE}A:1\n")).contains("after the end of the calendar"));
        assert!(told(&"BEGIN:VCALENDAR\n".repeat(DEPTH_MAX + 1)).starts_with("line 9: more than"));
        let broken = Component::read(b"BEGIN:VCALENDAR\nA:\xff\n").unwrap_err();
        assert_eq!(broken.to_string(), "line 2: it is no UTF-8");
    }
}
