//! Stub.
use crate::{error::TaskError, repo::Repo};
#[derive(clap::Args)]
pub(crate) struct Options {}
pub(crate) fn run(_repo: &Repo, _: &Options) -> Result<bool, TaskError> {
    Ok(true)
}
