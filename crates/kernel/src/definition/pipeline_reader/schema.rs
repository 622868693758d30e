//! Reads the schema of a pipeline's bodies.

use super::Form;
use crate::definition::pipeline::CaseSchema;
use crate::definition::plan::mistake::Mistake;
use crate::definition::plan::read::Spot;

pub(super) const KEYS: &[&str] = &["caseIdField", "reasonField", "allowedFields", "requiredFields"];

/// Where a body says why it came, unless the file says otherwise.
const REASON: &str = "reason";

/// What makes a map a pointer: no field can be called so, for a case is put together of pointers.
const POINTER: &str = "jsonPath";

/// What events and answers have beside the case's id.
const TAKEN: &[&str] =
    &["ask", "by", "details", "error", "path", "reason", "result", "resultEvent", "status", "type"];

/// A list of fields, each with its place.
type Fields<'n> = Vec<(Spot<'n>, &'n str)>;

impl Form<'_> {
    pub(super) fn case_schema(&mut self, spot: &Spot<'_>) -> Option<CaseSchema> {
        let field = self.reader.need(spot, "schema")?;
        if !self.reader.object(&field, "`schema`", KEYS) {
            return None;
        }
        let case_id = self.case_id_field(&field);
        let reason = match field.field("reasonField") {
            Some(named) => self.reader.name(&named),
            None => Some(REASON),
        };
        let allowed = self.fields(&field, "allowedFields");
        let required = self.fields(&field, "requiredFields");
        let case_id = case_id?;
        let reason = reason?;
        let allowed = allowed?;
        let required = required?;
        for (item, name) in &required {
            if !names(&allowed).any(|known| known == *name) {
                let mistake = Mistake::error(format!("`{name}` is required and not allowed"));
                self.reader.note(item, mistake.hint("add it to `allowedFields`"));
            }
        }
        for (key, name) in [("caseIdField", case_id), ("reasonField", reason)] {
            if !names(&required).any(|known| known == name) {
                let what = format!("`{name}` is the `{key}`, and not required");
                let hint = "add it to `requiredFields` and `allowedFields`";
                let place = field.field(key);
                self.reader.note(place.as_ref().unwrap_or(&field), Mistake::error(what).hint(hint));
            }
        }
        Some(CaseSchema {
            case_id_field: case_id.to_owned(),
            reason_field: reason.to_owned(),
            allowed: names(&allowed).map(str::to_owned).collect(),
            required: names(&required).map(str::to_owned).collect(),
            id_chars_max: self.reader.limits.client_id_chars_max,
        })
    }

    fn case_id_field<'n>(&mut self, spot: &Spot<'n>) -> Option<&'n str> {
        let field = self.reader.need(spot, "caseIdField")?;
        let name = self.reader.name(&field)?;
        if TAKEN.contains(&name) {
            let mistake = Mistake::error(format!("`caseIdField` cannot be `{name}`"));
            let hint = "events and answers have something else under that name";
            self.reader.note(&field, mistake.hint(hint));
            return None;
        }
        Some(name)
    }

    fn fields<'n>(&mut self, spot: &Spot<'n>, key: &str) -> Option<Fields<'n>> {
        let field = self.reader.need(spot, key)?;
        let mut fields: Fields<'n> = Vec::new();
        let mut whole = true;
        for item in self.reader.filled(&field)? {
            let Some(name) = self.reader.name(&item) else {
                whole = false;
                continue;
            };
            if name == POINTER {
                let mistake = Mistake::error(format!("a field cannot be called `{name}`"));
                self.reader.note(&item, mistake.hint("choose another name for it"));
                continue;
            }
            if names(&fields).any(|known| known == name) {
                let mistake = Mistake::error(format!("`{name}` is in `{key}` twice"));
                self.reader.note(&item, mistake.hint("keep one of the two"));
                continue;
            }
            fields.push((item, name));
        }
        whole.then_some(fields)
    }
}

fn names<'f>(fields: &'f Fields<'_>) -> impl Iterator<Item = &'f str> {
    fields.iter().map(|(_, name)| *name)
}
