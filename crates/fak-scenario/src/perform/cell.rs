//! The acts on the space's cells (§5.11). Watches, on cells and on records, are kept in `record`.

use fak_abi::{Outcome, ShareScope};
use fak_sharedtask::{CellView, CellWrite};
use serde_json::json;

use super::{
    done::{Done, Stop},
    record::{Watch, empty},
    world::{Kept, World},
};
use crate::act::{Actor, Body};

impl World {
    pub(super) fn watch_cells(&mut self, by: &Actor, prefix: &str, name: &str) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let outcome = self.records.space.watch(&handle, prefix, ShareScope::Fleet);
        let done = Done::decided(&outcome.verdict()).at(cell_address(prefix));
        if let Some(watch) = outcome.allowed() {
            self.records.watches.insert(name.to_owned(), Watch::Cells(watch));
        }
        Ok(done)
    }

    pub(super) fn put(&mut self, by: &Actor, key: &str, body: &Body) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let body = self.body(by, body)?;
        Ok(written(self.records.space.put(&handle, key, &body)).at(cell_address(key)))
    }

    pub(super) fn cas(
        &mut self,
        by: &Actor,
        key: &str,
        body: &Body,
        (version, scope): (u64, Option<ShareScope>),
    ) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let made = self.body(by, body)?;
        // The cell's scope is that of the body that goes into it, unless the step says otherwise.
        let scope = scope.or(body.scope).unwrap_or(ShareScope::Fleet);
        Ok(written(self.records.space.cas(&handle, key, scope, version, &made)).at(cell_address(key)))
    }

    pub(super) fn get(&mut self, by: &Actor, key: &str, scope: Option<ShareScope>) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let outcome = self.records.space.get(&handle, key, scope.unwrap_or(ShareScope::Fleet));
        let mut done = Done::decided(&outcome.verdict()).at(cell_address(key));
        match outcome.allowed() {
            None => {}
            Some(None) => empty(&mut done),
            Some(Some(CellView { body, version, .. })) => {
                if let Some(bytes) = handle.read(&body).allowed() {
                    done.text(&bytes);
                }
                done.answers.set("version", version);
                done.answers.set("taint", body.taint().name());
                done.answers.set("scope", body.scope().name());
                done.answers.set("empty", false);
                done.yields = Some(Kept::Ref(body));
            }
        }
        Ok(done)
    }

    pub(super) fn delete(
        &mut self,
        by: &Actor,
        key: &str,
        version: u64,
        scope: Option<ShareScope>,
    ) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let scope = scope.unwrap_or(ShareScope::Fleet);
        Ok(written(self.records.space.delete(&handle, key, scope, version)).at(cell_address(key)))
    }

    pub(super) fn list(&mut self, by: &Actor, prefix: &str, scope: Option<ShareScope>) -> Result<Done, Stop> {
        let handle = self.handle(by)?;
        let outcome = self.records.space.list(&handle, prefix, scope.unwrap_or(ShareScope::Fleet));
        let mut done = Done::decided(&outcome.verdict()).at(cell_address(prefix));
        if let Some(cells) = outcome.allowed() {
            let keys: Vec<String> = cells.into_iter().map(|(key, _)| key.as_str().to_owned()).collect();
            done.note = Some(if keys.is_empty() { "no keys".to_owned() } else { keys.join(", ") });
            done.answers.set("keys", keys);
        }
        Ok(done)
    }
}

/// What a permitted write to a cell came to.
fn written(outcome: Outcome<CellWrite>) -> Done {
    let mut done = Done::decided(&outcome.verdict());
    match outcome.allowed() {
        None => {}
        Some(CellWrite::Done { version }) => {
            done.note = Some(format!("version {version}"));
            done.answers.set("version", version);
        }
        Some(CellWrite::Conflict { current }) => {
            done.note = Some(match current {
                Some(version) => format!("conflict: the cell is at version {version}"),
                None => "conflict: the cell is not there".to_owned(),
            });
            done.answers.set("conflict", json!({ "version": current }));
        }
    }
    done
}

pub(super) fn cell_address(key: &str) -> String {
    format!("cell:{key:?}")
}
