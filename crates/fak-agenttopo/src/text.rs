//! Reading a topology from JSON text. Which file the text came from is the caller's to say.

use fak_abi::Id;
use fak_abi::json::{Cursor, Document, Error, Limits};
use fak_comm::{Group, GroupSpec, Member};

use crate::error::TopoError;
use crate::topology::Topology;

impl Topology {
    /// Reads `{"name": …, "edges": [[from, to], …], "members": […]}` (§6.8). Members are ids or objects of
    /// `id`, `lane` and `weight`; without them the group is whom the edges name.
    ///
    /// # Errors
    ///
    /// [`TopoError::Json`] with line and member for text that is not such an object; those of
    /// [`Topology::declare`].
    pub fn from_json(text: &[u8]) -> Result<Self, TopoError> {
        let document = Document::parse(text, &Limits::default())?;
        let mut fields = document.root().object()?;
        let (name, edges) = (fields.required("name"), fields.required("edges"));
        let members = fields.optional("members");
        // A member that is misspelt before one that is missing.
        fields.finish()?;
        let name = read_id(name?)?;
        let edges = edges?.array()?.map(read_edge).collect::<Result<Vec<_>, _>>()?;
        let members = members.map(read_members).transpose()?;
        match members {
            Some(members) => {
                let group = Group::new(GroupSpec::new(name.clone(), members))?;
                Self::declare(name, group, edges.iter().map(|(from, to)| (from, to)))
            }
            None => Self::over(name, &edges),
        }
    }
}

fn read_id(cursor: Cursor<'_>) -> Result<Id, Error> {
    Id::new(cursor.string()?).map_err(|err| cursor.invalid(format!("an id: {err}")))
}

fn read_edge(cursor: Cursor<'_>) -> Result<(Id, Id), Error> {
    let mut ends = cursor.array()?;
    match (ends.next(), ends.next(), ends.next()) {
        (Some(from), Some(to), None) => Ok((read_id(from)?, read_id(to)?)),
        _ => Err(cursor.invalid("an edge: two ids, from and to")),
    }
}

fn read_members(cursor: Cursor<'_>) -> Result<Vec<Member>, Error> {
    cursor.array()?.map(read_member).collect()
}

fn read_member(cursor: Cursor<'_>) -> Result<Member, Error> {
    if cursor.string().is_ok() {
        return read_id(cursor).map(Member::new);
    }
    let mut fields = cursor.object()?;
    let mut member = Member::new(read_id(fields.required("id")?)?);
    if let Some(lane) = fields.optional("lane") {
        member = member.in_lane(read_id(lane)?);
    }
    if let Some(weight) = fields.optional("weight") {
        member = member.weighing(weight.f64()?);
    }
    fields.finish()?;
    Ok(member)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        Topology::from_json(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn members_are_named_or_those_of_the_edges() {
        let t = Topology::from_json(br#"{"name": "t", "edges": [["a", "b"], ["a", "c"]]}"#).unwrap();
        assert_eq!((t.group().size(), t.edge_count()), (3, 2));
        let t = Topology::from_json(
            br#"{"name": "t", "edges": [], "members": ["a", {"id": "b", "lane": "docs", "weight": 2}]}"#,
        )
        .unwrap();
        let b = t.group().member(1).unwrap();
        assert_eq!((b.lane().unwrap().as_str(), b.weight()), ("docs", 2.0));
    }

    #[test]
    fn errors_say_what_where_and_what_was_expected() {
        for (text, parts) in [
            (
                "{\"name\": \"t\",\n \"edgs\": []}",
                vec!["line 2", "unknown member \"edgs\"", "did you mean \"edges\"?"],
            ),
            ("{\"edges\": []}", vec!["missing member \"name\""]),
            ("{\"name\": \"t\", \"edges\": [],\n \"membres\": []}", vec!["membres", "members", "line 2"]),
            ("{\"name\": \"t\",\n \"edges\": [[\"a\"]]}", vec!["line 2", "/edges/0", "two ids"]),
            ("{\"name\": \"t\",\n \"edges\": [[\"a\", 7]]}", vec!["line 2", "/edges/0/1"]),
            ("{\"name\": \"\", \"edges\": []}", vec!["name", "id"]),
            ("{\"name\": \"t\", \"name\": \"t\", \"edges\": []}", vec!["name"]),
            ("[]", vec!["object"]),
            (
                "{\"name\": \"t\", \"edges\": [[\"a\", \"b\"], [\"b\", \"a\"]]}",
                vec!["\"a\" -> \"b\" -> \"a\""],
            ),
            ("{\"name\": \"t\", \"edges\": [[\"a\", \"b\"]], \"members\": [\"a\"]}", vec!["edge 0", "\"b\""]),
            ("{\"name\": \"t\", \"edges\": [], \"members\": [\"a\", \"a\"]}", vec!["listed twice"]),
            (
                "{\"name\": \"t\", \"edges\": [], \"members\": [{\"id\": \"a\", \"weight\": 0}]}",
                vec!["weight"],
            ),
        ] {
            let message = error(text);
            for part in parts {
                assert!(message.contains(part), "{message:?} does not say {part:?}");
            }
        }
        assert!(Topology::from_json("[".repeat(100_000).as_bytes()).is_err());
    }
}
