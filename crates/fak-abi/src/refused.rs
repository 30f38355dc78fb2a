//! A verdict in the hands of its caller: the error that a refusal becomes where it is the end, and the object that programs and
//! models read.

use std::fmt;

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use thiserror::Error;

use crate::verdict::Verdict;

/// The verdict of an act that did not happen, as an error: what a caller makes of it with `ok`, so that `?` passes it on. No act
/// answers one (§1.3). Its text is the verdict's, also where it is shown as `{:?}`, as `main` does.
///
/// ```
/// use fak_abi::{Outcome, Reason, Refusal, Site};
///
/// let refused: Outcome<u32> = Outcome::deny(Refusal::new(Reason::RateLimited, Site::new("me/full")), "me");
/// let error = refused.ok().err().ok_or("allowed")?;
/// assert_eq!(error.verdict().reason(), Some(Reason::RateLimited));
/// assert!(error.to_string().starts_with("deny RATE_LIMITED (wait) by me at me/full: "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Error)]
#[error("{0}")]
pub struct Refused(pub(crate) Verdict);

impl Refused {
    /// The verdict: never an allow.
    #[inline]
    pub const fn verdict(&self) -> &Verdict {
        &self.0
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Verdict {
    /// Nothing, or the refusal as an error: for callers to whom a refusal is the end.
    ///
    /// # Errors
    ///
    /// [`Refused`], unless the act happens.
    ///
    /// ```
    /// use fak_abi::{Refused, Verdict};
    ///
    /// fn tidy(sent: Verdict) -> Result<(), Refused> {
    ///     sent.ok()?;
    ///     Ok(())
    /// }
    /// # assert!(tidy(Verdict::allow("me")).is_ok());
    /// ```
    #[inline]
    pub fn ok(self) -> Result<(), Refused> {
        if self.is_allow() { Ok(()) } else { Err(Refused(self)) }
    }
}

impl Serialize for Verdict {
    /// An object for programs and models, its members named as the audit names them: `verdict` and `by`, and of a refusal `reason`,
    /// `disposition`, `site`, `next`, and `lacks` and `retry_after_ms` where they are known. Never a byte of a body.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("verdict", self.kind().name())?;
        map.serialize_entry("by", self.by())?;
        if let Some(refusal) = self.refusal() {
            map.serialize_entry("reason", refusal.reason.name())?;
            map.serialize_entry("disposition", refusal.reason.disposition().name())?;
            map.serialize_entry("site", &format_args!("{}", refusal.site))?;
            map.serialize_entry("next", &format_args!("{}", refusal.next()))?;
            if let Some(capability) = refusal.lacks {
                map.serialize_entry("lacks", capability.name())?;
            }
            if let Some(ms) = refusal.retry_after_ms {
                map.serialize_entry("retry_after_ms", &ms)?;
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Capability, Reason, Refusal, Site};

    #[test]
    fn a_verdict_is_one_object_for_programs() {
        let json = |verdict: &Verdict| serde_json::to_string(verdict).unwrap();
        assert_eq!(json(&Verdict::allow("me")), r#"{"verdict":"allow","by":"me"}"#);
        let refusal = Refusal::lacking(Capability::A2aSend, Site::new("me/no").item(1)).retry_after(40);
        assert_eq!(
            json(&Verdict::deny(refusal, "me")),
            r#"{"verdict":"deny","by":"me","reason":"DEFAULT_DENY","disposition":"terminal","site":"me/no#2","#.to_owned()
                + r#""next":"the capability a2a.send is not granted: ask the host to grant it","lacks":"a2a.send","retry_after_ms":40}"#
        );
    }

    #[test]
    fn only_what_happens_is_ok() {
        let refusal = Refusal::new(Reason::Misroute, Site::new("me/no"));
        let verdicts =
            [Verdict::deny(refusal, "me"), Verdict::Quarantine { by: "me" }, Verdict::Defer { by: "me" }];
        for verdict in verdicts {
            let text = verdict.to_string();
            let error = verdict.ok().unwrap_err();
            assert_eq!((error.to_string(), format!("{error:?}")), (text.clone(), text));
        }
        assert!(Verdict::allow("me").ok().is_ok());
    }
}
