//! Open decisions: what somebody has to settle before a task can go on.

use fak_abi::json::{self, Cursor, Member, ObjectWriter, Sink};

use super::Limits;

/// One decision, open or settled (§5.3).
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Its name within the record.
    pub decision_id: Box<str>,
    /// How far it has come; a word of the people who use the record.
    pub state: Box<str>,
    /// Why it is asked.
    pub reason: Box<str>,
    /// Unknown members, kept (§5.1).
    pub rest: Vec<Member>,
}

impl Decision {
    pub(crate) fn read(cursor: Cursor<'_>, limits: &Limits) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        Ok(Self {
            decision_id: limits.short(fields.required("decision_id")?)?.into(),
            state: limits.long(fields.required("state")?)?.into(),
            reason: limits.long(fields.required("reason")?)?.into(),
            rest: fields.rest(),
        })
    }

    pub(crate) fn members<S: Sink>(&self, o: &mut ObjectWriter<'_, S>) {
        o.string("decision_id", &self.decision_id)
            .string("state", &self.state)
            .string("reason", &self.reason)
            .rest(&self.rest);
    }
}
