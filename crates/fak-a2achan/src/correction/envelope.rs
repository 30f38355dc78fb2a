//! The envelopes of corrections (§4.9), read strictly and written so that their digests are those
//! of every other implementation (§7.1).

use fak_abi::{
    Digest,
    json::{self, Cursor, Document, Fields, Limits},
};

/// The most bytes a correction's text may have. A request may lower it, never raise it (§4.9).
pub const MAX_CORRECTION_BYTES: u64 = 1_024;

/// A worker's statement of what it is doing: `fak.a2a.worker-status.v1` (§4.9).
///
/// ```
/// # use fak_a2achan::{Bus, BusConfig};
/// # use fak_abi::{Capability::*, ChannelKey, Id, Locale, PrincipalSpec, ShareScope};
/// # use fak_adjudicate::Kernel;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let bus = Bus::new(BusConfig::default())?;
/// # let kernel = Kernel::builder().driver(bus.driver()).build()?;
/// # let attach = |name: &str| -> Result<_, Box<dyn std::error::Error>> {
/// #     let spec = PrincipalSpec::agent(Id::new(name)?).fleet(Id::new("crew")?);
/// #     Ok(kernel.attach(spec.caps([A2aSend, A2aRecv, RefWiden]))?)
/// # };
/// # let (alpha, bravo) = (attach("alpha")?, attach("bravo")?);
/// # let work = ChannelKey::new(Locale::InKernel, "work")?;
/// # let order = alpha.widen(&alpha.mint("build"), ShareScope::Fleet).ok()?;
/// use fak_a2achan::{CorrectionRequest, WorkerStatus};
///
/// let status = WorkerStatus {
///     worker_id: "bravo".into(), issue: 7, task_id: String::new(), lane: "docs".into(),
///     live: true, seq: 1, last_action: "writing chapter 2".into(),
/// };
/// assert!(bus.endpoint(&bravo).post_status(&status).verdict.is_allow());
/// // A correction cites the status it answers; one that has moved on is not steered by it (I02).
/// let request = CorrectionRequest {
///     orchestrator_id: "alpha".into(), worker_id: "bravo".into(), issue: 7, task_id: String::new(),
///     lane: "docs".into(), message: "stop after this chapter".into(),
///     status_digest: status.digest().to_string(), max_bytes: None,
/// };
/// assert!(bus.endpoint(&alpha).correct(&request).verdict.is_allow());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WorkerStatus {
    /// The worker: the id of the principal that posts it.
    pub worker_id: String,
    /// The issue it works on; positive.
    pub issue: i64,
    /// The task; may be empty.
    pub task_id: String,
    /// The lane.
    pub lane: String,
    /// True while it can be corrected.
    pub live: bool,
    /// Rises with every status of the worker; positive.
    pub seq: i64,
    /// What it did last; may be empty.
    pub last_action: String,
}

/// What an orchestrator asks for (§4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CorrectionRequest {
    /// The orchestrator: the id of the principal that asks.
    pub orchestrator_id: String,
    /// Whom to correct.
    pub worker_id: String,
    /// The issue it works on.
    pub issue: i64,
    /// The task; may be empty.
    pub task_id: String,
    /// The lane.
    pub lane: String,
    /// What it should do instead.
    pub message: String,
    /// The digest of the status that this corrects.
    pub status_digest: String,
    /// A ceiling below [`MAX_CORRECTION_BYTES`].
    pub max_bytes: Option<u64>,
}

/// A correction on its way: `fak.a2a.correction.v1` (§4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Correction {
    /// `corr_` and 16 hexadecimal digits, a function of everything else.
    pub correction_id: String,
    /// Who corrects.
    pub orchestrator_id: String,
    /// Who is corrected.
    pub worker_id: String,
    /// The issue.
    pub issue: i64,
    /// The task; may be empty.
    pub task_id: String,
    /// The lane.
    pub lane: String,
    /// What to do instead.
    pub message: String,
    /// The digest of the status it corrects.
    pub status_digest: String,
    /// The ceiling it was checked against.
    pub max_bytes: u64,
}

/// What a corrected worker does next (§4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NextAction {
    /// The worker.
    pub worker_id: String,
    /// The issue.
    pub issue: i64,
    /// The task; may be empty.
    pub task_id: String,
    /// The lane.
    pub lane: String,
    /// The correction that it follows.
    pub correction_id: String,
    /// The digest of the status that was corrected.
    pub status_digest: String,
    /// What it is.
    pub summary: String,
}

/// A worker's acknowledgement: `fak.a2a.correction-ack.v1` (§4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CorrectionAck {
    /// What is acknowledged.
    pub correction_id: String,
    /// By whom.
    pub worker_id: String,
    /// The digest of the status that was corrected.
    pub status_digest: String,
    /// True if it is accepted.
    pub acked: bool,
    /// What the worker does next.
    pub next_action: NextAction,
}

/// The audit row that every attempt to correct yields: `fak.a2a.correction-audit.v1` (§4.9).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CorrectionAudit {
    /// The correction; empty if none was made.
    pub correction_id: String,
    /// Who tried to correct.
    pub orchestrator_id: String,
    /// Whom.
    pub worker_id: String,
    /// The issue.
    pub issue: i64,
    /// The task; may be empty.
    pub task_id: String,
    /// The lane.
    pub lane: String,
    /// The digest that was cited.
    pub status_digest: String,
    /// The bytes of the text.
    pub bytes: u64,
    /// The ceiling.
    pub max_bytes: u64,
    /// `ALLOW` or `DENY`.
    pub verdict: String,
    /// The reason of a denial.
    pub reason: String,
    /// The rung that decided.
    pub by: String,
}

const STATUS: &str = "fak.a2a.worker-status.v1";
const CORRECTION: &str = "fak.a2a.correction.v1";
const ACK: &str = "fak.a2a.correction-ack.v1";
const AUDIT: &str = "fak.a2a.correction-audit.v1";

fn open<'d>(document: &'d Document<'_>, schema: Option<&'static str>) -> Result<Fields<'d>, json::Error> {
    let mut fields = document.root().object()?;
    if let Some(schema) = schema {
        check_schema(fields.required("schema")?, schema)?;
    }
    Ok(fields)
}

fn check_schema(cursor: Cursor<'_>, schema: &'static str) -> Result<(), json::Error> {
    if cursor.string()? == schema { Ok(()) } else { Err(cursor.invalid(format!("the schema {schema:?}"))) }
}

fn text(fields: &mut Fields<'_>, name: &'static str) -> Result<String, json::Error> {
    Ok(fields.required(name)?.string()?.to_owned())
}

fn optional_text(fields: &mut Fields<'_>, name: &'static str) -> Result<String, json::Error> {
    fields.optional(name).map_or(Ok(String::new()), |cursor| cursor.string().map(str::to_owned))
}

impl WorkerStatus {
    /// Reads a status.
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, json::Error> {
        let document = Document::parse(bytes, &Limits::default())?;
        let mut fields = open(&document, Some(STATUS))?;
        let status = Self {
            worker_id: text(&mut fields, "worker_id")?,
            issue: fields.required("issue")?.i64()?,
            task_id: optional_text(&mut fields, "task_id")?,
            lane: text(&mut fields, "lane")?,
            live: fields.required("live")?.boolean()?,
            seq: fields.required("seq")?.i64()?,
            last_action: optional_text(&mut fields, "last_action")?,
        };
        fields.finish()?;
        Ok(status)
    }

    /// Its canonical bytes (§7.1).
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("schema", STATUS).string("worker_id", &self.worker_id).i64("issue", self.issue);
            o.string_unless_empty("task_id", &self.task_id).string("lane", &self.lane);
            o.boolean("live", self.live).i64("seq", self.seq);
            o.string_unless_empty("last_action", &self.last_action);
        });
        out
    }

    /// The digest by which a correction cites it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        Digest::of(&self.to_json())
    }
}

impl CorrectionRequest {
    /// Reads a request.
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, json::Error> {
        let document = Document::parse(bytes, &Limits::default())?;
        let mut fields = open(&document, None)?;
        let request = Self {
            orchestrator_id: text(&mut fields, "orchestrator_id")?,
            worker_id: text(&mut fields, "worker_id")?,
            issue: fields.required("issue")?.i64()?,
            task_id: optional_text(&mut fields, "task_id")?,
            lane: text(&mut fields, "lane")?,
            message: text(&mut fields, "message")?,
            status_digest: text(&mut fields, "status_digest")?,
            max_bytes: fields.optional("max_bytes").map(Cursor::u64).transpose()?,
        };
        fields.finish()?;
        Ok(request)
    }

    /// Its canonical bytes (§7.1).
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("orchestrator_id", &self.orchestrator_id).string("worker_id", &self.worker_id);
            o.i64("issue", self.issue).string_unless_empty("task_id", &self.task_id);
            o.string("lane", &self.lane).string("message", &self.message);
            o.string("status_digest", &self.status_digest);
            if let Some(max_bytes) = self.max_bytes.filter(|bytes| *bytes > 0) {
                o.u64("max_bytes", max_bytes);
            }
        });
        out
    }

    /// The ceiling that applies: the request's, if it is lower.
    #[must_use]
    pub fn ceiling(&self) -> u64 {
        self.max_bytes
            .filter(|bytes| *bytes > 0)
            .map_or(MAX_CORRECTION_BYTES, |it| it.min(MAX_CORRECTION_BYTES))
    }

    /// The correction that this asks for, with its id.
    #[must_use]
    pub fn correction(&self) -> Correction {
        let correction = Correction {
            correction_id: String::new(),
            orchestrator_id: self.orchestrator_id.clone(),
            worker_id: self.worker_id.clone(),
            issue: self.issue,
            task_id: self.task_id.clone(),
            lane: self.lane.clone(),
            message: self.message.clone(),
            status_digest: self.status_digest.clone(),
            max_bytes: self.ceiling(),
        };
        Correction { correction_id: correction.computed_id(), ..correction }
    }
}

impl Correction {
    /// Reads a correction. Whether its id is right is asked by [`Correction::computed_id`].
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, json::Error> {
        let document = Document::parse(bytes, &Limits::default())?;
        let mut fields = open(&document, Some(CORRECTION))?;
        let correction = Self {
            correction_id: text(&mut fields, "correction_id")?,
            orchestrator_id: text(&mut fields, "orchestrator_id")?,
            worker_id: text(&mut fields, "worker_id")?,
            issue: fields.required("issue")?.i64()?,
            task_id: optional_text(&mut fields, "task_id")?,
            lane: text(&mut fields, "lane")?,
            message: text(&mut fields, "message")?,
            status_digest: text(&mut fields, "status_digest")?,
            max_bytes: fields.required("max_bytes")?.u64()?,
        };
        fields.finish()?;
        Ok(correction)
    }

    /// Its canonical bytes (§7.1).
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        self.written(&self.correction_id)
    }

    fn written(&self, id: &str) -> Vec<u8> {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("schema", CORRECTION).string("correction_id", id);
            o.string("orchestrator_id", &self.orchestrator_id).string("worker_id", &self.worker_id);
            o.i64("issue", self.issue).string_unless_empty("task_id", &self.task_id);
            o.string("lane", &self.lane).string("message", &self.message);
            o.string("status_digest", &self.status_digest).u64("max_bytes", self.max_bytes);
        });
        out
    }

    /// The id that its content gives: `corr_` and the first 16 hexadecimal digits of the digest
    /// taken with the id blank.
    #[must_use]
    pub fn computed_id(&self) -> String {
        let hex = Digest::of(&self.written("")).hex();
        format!("corr_{}", hex.get(..16).unwrap_or(&hex))
    }

    /// The next action that carries this correction's id.
    #[must_use]
    pub fn next_action(&self, summary: &str) -> NextAction {
        NextAction {
            worker_id: self.worker_id.clone(),
            issue: self.issue,
            task_id: self.task_id.clone(),
            lane: self.lane.clone(),
            correction_id: self.correction_id.clone(),
            status_digest: self.status_digest.clone(),
            summary: summary.to_owned(),
        }
    }

    /// The acknowledgement of this correction, with what its worker does next.
    #[must_use]
    pub fn ack(&self, next_action: NextAction) -> CorrectionAck {
        CorrectionAck {
            correction_id: self.correction_id.clone(),
            worker_id: self.worker_id.clone(),
            status_digest: self.status_digest.clone(),
            acked: true,
            next_action,
        }
    }
}

impl NextAction {
    fn read(cursor: Cursor<'_>) -> Result<Self, json::Error> {
        let mut fields = cursor.object()?;
        let action = Self {
            worker_id: text(&mut fields, "worker_id")?,
            issue: fields.required("issue")?.i64()?,
            task_id: optional_text(&mut fields, "task_id")?,
            lane: text(&mut fields, "lane")?,
            correction_id: text(&mut fields, "correction_id")?,
            status_digest: text(&mut fields, "status_digest")?,
            summary: text(&mut fields, "summary")?,
        };
        fields.finish()?;
        Ok(action)
    }
}

impl CorrectionAck {
    /// Reads an acknowledgement.
    ///
    /// # Errors
    /// Says what is wrong and where.
    pub fn parse(bytes: &[u8]) -> Result<Self, json::Error> {
        let document = Document::parse(bytes, &Limits::default())?;
        let mut fields = open(&document, Some(ACK))?;
        let ack = Self {
            correction_id: text(&mut fields, "correction_id")?,
            worker_id: text(&mut fields, "worker_id")?,
            status_digest: text(&mut fields, "status_digest")?,
            acked: fields.required("acked")?.boolean()?,
            next_action: NextAction::read(fields.required("next_action")?)?,
        };
        fields.finish()?;
        Ok(ack)
    }

    /// Its canonical bytes (§7.1).
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("schema", ACK).string("correction_id", &self.correction_id);
            o.string("worker_id", &self.worker_id).string("status_digest", &self.status_digest);
            o.boolean("acked", self.acked);
            let action = &self.next_action;
            o.object("next_action", |o| {
                o.string("worker_id", &action.worker_id).i64("issue", action.issue);
                o.string_unless_empty("task_id", &action.task_id).string("lane", &action.lane);
                o.string("correction_id", &action.correction_id);
                o.string("status_digest", &action.status_digest).string("summary", &action.summary);
            });
        });
        out
    }

    /// True if the next action carries the correction's id: it was not merely acknowledged.
    #[must_use]
    pub fn is_reflected(&self) -> bool {
        self.next_action.correction_id == self.correction_id
    }
}

impl CorrectionAudit {
    /// Its canonical bytes (§7.1).
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        json::object(&mut out, |o| {
            o.string("schema", AUDIT).string_unless_empty("correction_id", &self.correction_id);
            o.string("orchestrator_id", &self.orchestrator_id).string("worker_id", &self.worker_id);
            o.i64("issue", self.issue).string_unless_empty("task_id", &self.task_id);
            o.string("lane", &self.lane).string_unless_empty("status_digest", &self.status_digest);
            o.u64("bytes", self.bytes).u64("max_bytes", self.max_bytes);
            o.string("verdict", &self.verdict).string_unless_empty("reason", &self.reason);
            o.string("by", &self.by);
        });
        out
    }
}
