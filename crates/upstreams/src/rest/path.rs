//! Path templates: literal texts with parameters between them.

use super::encode::path_text;

/// A path with places for parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// As it is sent.
    Text(String),
    /// The value of this parameter.
    Name(String),
}

impl Template {
    /// Reads `/pets/{id}`. A brace that is not closed is a character like any other.
    pub(super) fn read(path: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = path;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((name, after)) = after.split_once('}') else { break };
            if !before.is_empty() {
                parts.push(Part::Text(path_text(before)));
            }
            parts.push(Part::Name(name.to_owned()));
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(path_text(rest)));
        }
        Self(parts)
    }

    /// The names of its parameters.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter_map(|part| match part {
            Part::Name(name) => Some(name.as_str()),
            Part::Text(_) => None,
        })
    }

    /// The path with these values, which are encoded already.
    pub(super) fn filled<E>(&self, value: impl Fn(&str) -> Result<String, E>) -> Result<String, E> {
        let mut path = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => path.push_str(text),
                Part::Name(name) => path.push_str(&value(name)?),
            }
        }
        Ok(path)
    }
}

/// Whether a path has steps that lead upwards, or nowhere: a reader of a URL takes them out, and
/// another place is meant then.
pub(super) fn climbs(path: &str) -> bool {
    path.split('/').any(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain == "." || plain == ".."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_values_replace_their_parameters() {
        let template = Template::read("/pets/{id}/a b/{id}.{format}");
        assert_eq!(template.names().collect::<Vec<_>>(), ["id", "id", "format"]);
        let filled = template.filled(|name| Ok::<_, ()>(format!("<{name}>")));
        assert_eq!(filled.unwrap(), "/pets/<id>/a%20b/<id>.<format>");
        assert_eq!(template.filled(|_| Err("no")), Err("no"));
        assert_eq!(Template::read("/a{b").names().count(), 0);
    }

    #[test]
    fn dot_segments_in_paths_are_detected() {
        for path in ["/a/..", "/./a", "/a/%2e%2E/b", "/.%2e"] {
            assert!(climbs(path), "{path}");
        }
        for path in ["/a/...", "/a..b", "/.a", "/a", "/"] {
            assert!(!climbs(path), "{path}");
        }
    }
}
