//! The audit log (§3.6): one JSON line for every act, chained by hashes.
//!
//! Two halves. [`Audit`] is the kernel's: it reserves a slot before an act is allowed and takes the
//! entry when the act is over, without I/O. [`AuditLog`] is the host's: it drains what was queued
//! into an [`AuditSink`], whenever and on whatever thread the host likes. [`verify_audit`] checks a
//! log, from any reader. Who is audited for what is the kernel's business.
//!
//! # The format
//! Every line is one JSON object and ends with a line feed. `prev` is the SHA-256 of the line
//! before, *as the exact bytes written, line feed included* (64 zeros for the first), and `sum`,
//! always the last member, that of this line up to the comma before it, so that an edited line can
//! be told from one that merely follows an edited one. `sed -n 7p audit.jsonl | sha256sum` is what
//! `prev` of line 8 says, `tail -n 1 audit.jsonl | sha256sum` the head that a checkpoint names, and
//!
//! ```sh
//! check_audit() (
//!   prev=sha256:$(printf '%064d' 0); n=0; line=
//!   while IFS= read -r line; do
//!     n=$((n+1)); before=${line%',"sum":"'*}
//!     case $line in *'"prev":"'"$prev"'","sum":"'*) ;; *) echo "line $n does not follow"; exit 1 ;; esac
//!     case $line in *"sha256:$(printf %s "$before" | sha256sum | cut -c1-64)\"}") ;; *) echo "line $n was edited"; exit 1 ;; esac
//!     prev=sha256:$(printf '%s\n' "$line" | sha256sum | cut -c1-64)
//!   done
//!   [ -z "$line" ] || { echo "line $((n+1)) is torn"; exit 1; }
//!   echo "$n lines, head $prev"
//! )
//! check_audit < audit.jsonl
//! ```
//!
//! checks a whole log. `n` counts the lines from 1; `seq` is the number of the act that the entry is
//! about, and an entry of another `kind` than `act` cites it. No entry holds a byte of any body.
//!
//! Whoever can write the whole file can rewrite all of it. A [`Checkpoint`] kept elsewhere shows
//! that, and shows a tail that was cut off.

mod batch;
mod entry;
mod error;
mod log;
mod queue;
mod record;
mod sink;
mod verify;

pub use error::{AuditError, AuditFault};
pub use log::{AuditLog, AuditOptions, Drained, Opened};
pub use queue::{Audit, Gap};
pub use record::{AuditKind, AuditRecord};
pub use sink::AuditSink;
pub use verify::{AuditReader, Checkpoint, Torn, Verified, verify_audit};
