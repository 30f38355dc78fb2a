//! `fak task`: a shared record kept as a journal in a file, worked on as somebody (§5).

use std::{
    fs::{self, OpenOptions},
    io::{ErrorKind, Write as _},
    path::Path,
    sync::Arc,
};

use fak_abi::{
    AgentHandle, Capability, Outcome, PrincipalKind, PrincipalSpec, Reason, Verdict,
    json::{self, Document, write_value},
};
use fak_adjudicate::Kernel;
use fak_scenario::{counted, printable, spell_out};
use fak_sharedtask::{
    Conflict, Domain, Envelope as _, EventView, Limits, Patch, PatchFault, Patched, StoreConfig, TaskId,
    TaskStore, TaskView,
};
use serde_json::{Value, json};

use crate::{
    args::{BaseArg, TaskApplyArgs, TaskNewArgs, TaskVerb, TaskViewArgs, WhoArgs},
    failure::{Failure, open, read},
    kind::Kind,
    merge,
    output::Output,
};

pub(crate) fn task(verb: &TaskVerb, output: &mut Output) -> Result<u8, Failure> {
    match verb {
        TaskVerb::New(args) => new(args, output),
        TaskVerb::Apply(args) => apply(args, output),
        TaskVerb::View(args) => view(args, output),
        TaskVerb::Log(args) => log(args, output),
    }
}

/// A store with one record, in a kernel with one principal.
struct Desk {
    store: TaskStore,
    task: TaskId,
    agent: AgentHandle,
    /// The kernel must outlive what is done in it.
    _kernel: Arc<Kernel>,
}

impl Desk {
    fn open(journal: &Path, who: &WhoArgs) -> Result<Self, Failure> {
        let domain = Domain {
            fleet: who.store_fleet.clone().or_else(|| who.fleet.clone()),
            tenant: who.store_tenant.clone().or_else(|| who.tenant.clone()),
        };
        let (store, kernel) = built(domain).map_err(|problem| Failure::file(journal, problem))?;
        let task =
            store.load(open(journal)?).map_err(|error| Failure::of_kind(journal, Kind::Journal, error))?;
        let spec = PrincipalSpec {
            kind: if who.human { PrincipalKind::Human } else { PrincipalKind::Agent },
            fleet: who.fleet.clone(),
            tenant: who.tenant.clone(),
            ..PrincipalSpec::agent(who.id.clone())
        };
        let agent = kernel
            .attach(spec.caps([Capability::SharedtaskRead, Capability::SharedtaskWrite]))
            .map_err(|error| Failure::file(journal, error))?;
        Ok(Self { store, task, agent, _kernel: kernel })
    }
}

/// A store of this domain, built into a kernel of its own.
fn built(domain: Domain) -> Result<(TaskStore, Arc<Kernel>), String> {
    let store = TaskStore::new(StoreConfig { domain, ..StoreConfig::default() });
    let kernel = Kernel::builder().driver(store.driver()).build().map_err(|error| error.to_string())?;
    Ok((store, kernel))
}

fn new(args: &TaskNewArgs, output: &mut Output) -> Result<u8, Failure> {
    let text = spelled_out(&args.record)?;
    let (store, _kernel) =
        built(Domain::default()).map_err(|problem| Failure::file(&args.record, problem))?;
    let rev =
        store.create_json(&text).map_err(|error| Failure::of_kind(&args.record, Kind::Record, error))?;
    let Some(task) = store.tasks().into_iter().next() else {
        return Err(Failure::file(&args.record, "no record was made of it"));
    };
    let file = OpenOptions::new().write(true).create_new(true).open(&args.journal);
    let file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failure::file(&args.journal, "is there already, and is not written over: name another file")
        }
        _ => Failure::file(&args.journal, error),
    })?;
    store.journal(&task, file).map_err(|error| Failure::file(&args.journal, error))?;
    if output.json() {
        output.json_of(&json!({"task_id": task.as_str(), "rev": rev.to_string()}))?;
    } else {
        output.text(format!("{task} {rev}, journal in {}", args.journal.display()))?;
    }
    Ok(0)
}

fn apply(args: &TaskApplyArgs, output: &mut Output) -> Result<u8, Failure> {
    let desk = Desk::open(&args.journal, &args.who)?;
    let mut text = spelled_out(&args.patch)?;
    if args.base.is_some() {
        text = without_base(text);
    }
    let mut patch = Patch::parse(&text, &Limits::default()).map_err(|error| match error.path() {
        // "@current" and "@0" are for scenarios.
        "/base_rev" => Failure::file(&args.patch, format!("{error}; \"\" will do if --base is given")),
        _ => Failure::of_kind(&args.patch, Kind::Patch, error),
    })?;
    if let Some(base) = args.base {
        let found = match base {
            BaseArg::Current => desk.store.revision(&desk.task).map(|(_, rev)| rev),
            BaseArg::Number(number) => desk.store.revision_at(&desk.task, number),
        };
        let Some(rev) = found else {
            let last = desk.store.revision(&desk.task).map_or(0, |(number, _)| number);
            let problem = match last {
                0 => "--base: the record has no revision but 0".to_owned(),
                last => format!(
                    "--base: expected \"current\" or a revision from 0 to {last}, which are those it has"
                ),
            };
            return Err(Failure::file(&args.journal, problem));
        };
        patch.base_rev = Some(rev);
    }
    let patched = match desk.store.patch(&desk.agent, &patch, None) {
        Outcome::Allow { value, .. } => value,
        Outcome::Refuse(verdict) => return refused(&verdict, &args.who, output),
    };
    if patched.result.is_accepted() {
        rewrite(&desk, &args.journal)?;
    }
    if output.json() {
        output.json_of(&result_json(&patched))?;
    } else {
        tell(&patched, output)?;
    }
    Ok(u8::from(!patched.result.is_accepted()))
}

/// The record or patch in a file, whose bodies may be written as their text.
fn spelled_out(path: &Path) -> Result<Vec<u8>, Failure> {
    spell_out(read(path)?).map_err(|error| Failure::file(path, error))
}

/// The patch without a base that only a scenario knows (`@0`, `@current`), where another is given instead.
fn without_base(text: Vec<u8>) -> Vec<u8> {
    let place = Document::parse(&text, &json::Limits::default()).ok().and_then(|document| {
        let base = document.root().value().member("base_rev")?;
        let quoted = format!("\"{}\"", base.as_str().filter(|name| name.starts_with('@'))?);
        text.get(base.offset()..)?
            .starts_with(quoted.as_bytes())
            .then(|| base.offset()..base.offset() + quoted.len())
    });
    let Some(place) = place else { return text };
    let mut text = text;
    text.splice(place, *b"\"\"");
    text
}

/// Writes the journal beside the old one and puts it in its place: a crash leaves one of the two. The file itself is
/// replaced, not a link that leads to it.
fn rewrite(desk: &Desk, journal: &Path) -> Result<(), Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::file(journal, error);
    let real = fs::canonicalize(journal).map_err(|error| failed(&error))?;
    let mut beside = real.as_os_str().to_owned();
    beside.push(".new");
    // What a crash left. What somebody else put there is not written through, if it is a link.
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(&error)),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&beside);
    let mut file = file.map_err(|error| failed(&error))?;
    desk.store.journal(&desk.task, &mut file).map_err(|error| failed(&error))?;
    file.flush().and_then(|()| file.sync_all()).map_err(|error| failed(&error))?;
    fs::rename(&beside, &real).map_err(|error| failed(&error))
}

/// The kernel's refusal, and status 1.
fn refused(verdict: &Verdict, who: &WhoArgs, output: &mut Output) -> Result<u8, Failure> {
    if output.json() {
        output.json_of(&json!({
            "act": verdict.kind().name(),
            "reason": verdict.reason().map(Reason::name),
            "by": verdict.by(),
        }))?;
    } else {
        output.text(verdict.to_string())?;
        let check = verdict.refusal().map(|refusal| refusal.site.to_string());
        if let Some(site) = check.as_deref().and_then(fak_scenario::check) {
            output
                .text(format!("  refuses: {} ({})\n  next:    {}", site.refuses, site.clause, site.next))?;
            if site.check == "sharedtask/domain" {
                output.text(match who.fleet.is_some() || who.tenant.is_some() {
                    false => "           name it with --fleet or --tenant",
                    true => "           the store serves another: see --store-fleet and --store-tenant",
                })?;
            }
        }
    }
    Ok(1)
}

/// A JSON value of the record, as one line.
fn compact(value: &json::Value) -> String {
    let mut bytes = Vec::new();
    write_value(&mut bytes, value);
    printable(&String::from_utf8_lossy(&bytes))
}

fn tell(patched: &Patched, output: &mut Output) -> Result<(), Failure> {
    let Patched { result, revision, fault } = patched;
    let mut line = result.verdict.name().to_owned();
    if !result.reason.is_empty() {
        line.push(' ');
        line.push_str(&result.reason);
    }
    output.text(format!("{line}, {} at revision {revision}", result.task_id))?;
    if let Some(conflict) = &result.conflict {
        let Conflict { path, base_value, current_value, proposed_value, resolution, .. } = &**conflict;
        output.text(format!("  at        {}", printable(path)))?;
        output.text(format!("  base      {}", compact(base_value)))?;
        output.text(format!("  current   {}", compact(current_value)))?;
        output.text(format!("  proposed  {}", compact(proposed_value)))?;
        output.text(format!("  next      {resolution}"))?;
    }
    if let Some(quarantine) = &result.quarantine {
        output.text(format!("  {}", printable(&quarantine.safe_summary)))?;
    }
    if let Some(denial) = &result.denial {
        output.text(format!("  policy    {}", printable(&denial.policy)))?;
        if let Some(PatchFault { at, expected }) = fault {
            output.text(format!("  at        {}: {}", printable(at), printable(expected)))?;
            if at == "/base_rev" {
                output.text("  next      name one, or take the one in force: --base current")?;
            }
        } else if let Some(outcome) = merge::find(&result.reason) {
            output.text(format!("  means     {}\n  next      {}", outcome.means, outcome.next))?;
        }
    }
    Ok(())
}

fn result_json(patched: &Patched) -> Value {
    let envelope: Value = serde_json::from_slice(&patched.result.to_json()).unwrap_or_default();
    let fault = patched.fault.as_ref().map(|fault| json!({"at": fault.at, "expected": fault.expected}));
    json!({"revision": patched.revision, "result": envelope, "fault": fault})
}

fn view(args: &TaskViewArgs, output: &mut Output) -> Result<u8, Failure> {
    let desk = Desk::open(&args.journal, &args.who)?;
    let view = match desk.store.view(&desk.agent, &desk.task) {
        Outcome::Allow { value, .. } => value,
        Outcome::Refuse(verdict) => return refused(&verdict, &args.who, output),
    };
    if output.json() {
        let record: Value = serde_json::from_slice(&view.to_record().to_json()).unwrap_or_default();
        output.json_of(&json!({
            "revision": view.revision,
            "body_visible": view.body_visible,
            "redacted_notes": view.redacted_notes,
            "redacted_artifacts": view.redacted_artifacts,
            "record": record,
        }))?;
    } else {
        output.text(as_text(&view))?;
        if let (None, Some(fleet)) = (&args.who.store_fleet, &args.who.fleet) {
            // A journal does not say whom its record is for.
            output.text(format!(
                "  store     taken to be of fleet {fleet}, the reader's own: see --store-fleet"
            ))?;
        }
    }
    Ok(0)
}

fn as_text(view: &TaskView) -> String {
    let mut text = format!(
        "{} at revision {}: {}\n  title     {}\n  state     {}\n  updated   {} by {} {}\n",
        view.task_id,
        view.revision,
        view.rev,
        printable(&view.title),
        printable(&view.state),
        printable(&view.updated_at),
        printable(&view.updated_by.kind),
        printable(&view.updated_by.id)
    );
    let body = &view.body_ref;
    text.push_str(&match view.body_visible {
        true => {
            format!("  body      {} bytes, {}, {}, {}\n", body.bytes, body.digest, body.taint, body.scope)
        }
        false => "  body      hidden from this reader\n".to_owned(),
    });
    for note in view.notes() {
        let (id, author) = (printable(&note.note_id), printable(&note.author.id));
        text.push_str(&format!("  note      {id} by {author}, {}\n", note.body_ref.digest));
    }
    for artifact in view.artifacts() {
        let id = printable(&artifact.artifact_id);
        text.push_str(&format!("  artifact  {id}, {}\n", printable(&artifact.media_type)));
    }
    for decision in view.open_decisions() {
        let (id, state) = (printable(&decision.decision_id), printable(&decision.state));
        text.push_str(&format!("  decision  {id}: {state}\n"));
    }
    let hidden = (view.redacted_notes, view.redacted_artifacts);
    if hidden != (0, 0) {
        text.push_str(&format!("  hidden    {} notes, {} artifacts\n", hidden.0, hidden.1));
    }
    text
}

fn log(args: &TaskViewArgs, output: &mut Output) -> Result<u8, Failure> {
    let desk = Desk::open(&args.journal, &args.who)?;
    let events = match desk.store.events(&desk.agent, &desk.task) {
        Outcome::Allow { value, .. } => value,
        Outcome::Refuse(verdict) => return refused(&verdict, &args.who, output),
    };
    if output.json() {
        let list: Vec<Value> = events.events.iter().map(event_json).collect();
        output.json_of(&json!({
            "events": list, "redacted": events.redacted, "verifies": events.verifies(),
        }))?;
        return Ok(0);
    }
    for (index, event) in events.events.iter().enumerate() {
        output.text(match event {
            EventView::Shown(event) => format!(
                "{:>5} {} {} by {} {}, {}",
                index + 1,
                printable(&event.ts),
                printable(&event.event_kind),
                printable(&event.actor.kind),
                printable(&event.actor.id),
                event.scope
            ),
            EventView::Hidden { digest, .. } => format!("{:>5} hidden from this reader, {digest}", index + 1),
        })?;
    }
    output.text(format!(
        "{}, {} hidden, the chain {}",
        counted(events.events.len(), "event", "events"),
        events.redacted,
        if events.verifies() { "verifies" } else { "does not verify" }
    ))?;
    Ok(0)
}

fn event_json(event: &EventView) -> Value {
    match event {
        EventView::Shown(event) => serde_json::from_slice(&event.to_json()).unwrap_or_default(),
        EventView::Hidden { digest, prev_event } => json!({
            "digest": digest.to_string(), "prev_event": prev_event.map(|digest| digest.to_string()),
        }),
    }
}
