//! What the targets share: a bound on memory, a reader that hands out little at a time, and a body planted in an input,
//! to see that no error repeats it. What is checked of each parser is in its target.

use std::fmt::{Debug, Display};
use std::io::Read;

use fak_abi::json::{Document, Kind, Limits, Member, Value, write_value};

/// The text of a planted body.
pub const MARKER: &str = "Qz7-planted-body";

/// Performs `work` on an input of `bytes`, and checks that the memory it held at its peak is within `each` bytes for
/// every byte of the input, and 256 KiB: a number that was merely read cannot have sized anything (§8).
pub fn frugal<T>(bytes: usize, each: usize, work: impl FnOnce() -> T) -> T {
    let mut done = None;
    let info = allocation_counter::measure(|| done = Some(work()));
    let limit = (256 << 10) + each * bytes;
    assert!(info.bytes_max as usize <= limit, "{} bytes held for an input of {bytes}", info.bytes_max);
    done.expect("the work was done")
}

/// Checks that an error says nothing of a planted body, neither to a user nor to a developer.
pub fn keeps_quiet(error: &(impl Display + Debug)) {
    let (said, shown) = (error.to_string(), format!("{error:?}"));
    assert!(!said.contains(MARKER), "the error repeats a body: {said}");
    assert!(!shown.contains(MARKER), "the error holds a body: {shown}");
}

/// The input, if it is JSON, with its `pick`th string value replaced by the planted body: member names stay.
pub fn planted(text: &[u8], pick: usize) -> Option<Vec<u8>> {
    let mut root = Document::parse(text, &Limits::default()).ok()?.into_value();
    let count = plant(&mut root, usize::MAX);
    plant(&mut root, pick.checked_rem(count)?);
    let mut out = Vec::new();
    write_value(&mut out, &root);
    Some(out)
}

/// Replaces the string numbered `pick`, and answers how many there are.
fn plant(root: &mut Value, pick: usize) -> usize {
    let mut seen = 0;
    let taken = std::mem::replace(root, Value::new(Kind::Null));
    *root = replant(taken, pick, &mut seen);
    seen
}

/// Nested at most as deep as the reader allows.
fn replant(value: Value, pick: usize, seen: &mut usize) -> Value {
    let kind = match value.into_kind() {
        Kind::String(text) => {
            *seen += 1;
            Kind::String(if *seen == pick.wrapping_add(1) { MARKER.into() } else { text })
        }
        Kind::Array(elements) => {
            Kind::Array(elements.into_iter().map(|it| replant(it, pick, seen)).collect())
        }
        Kind::Object(members) => Kind::Object(
            members
                .into_iter()
                .map(|member| Member { name: member.name, value: replant(member.value, pick, seen) })
                .collect(),
        ),
        other => other,
    };
    Value::new(kind)
}

/// A number out of an input, that is the same for the same input: picks what to plant where.
pub fn pick(data: &[u8]) -> usize {
    data.iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
        as usize
}

/// Hands out at most `.1` bytes a read, so that boundaries are met.
pub struct Drip<'t>(pub &'t [u8], pub usize);

impl Read for Drip<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let n = self.0.len().min(buf.len()).min(self.1.max(1));
        let (head, tail) = self.0.split_at(n);
        buf[..n].copy_from_slice(head);
        self.0 = tail;
        Ok(n)
    }
}

/// Edits of a good text, four bytes each: a place, what is done there, and with what.
pub fn edited(good: &[u8], edits: &[u8]) -> Vec<u8> {
    let mut out = good.to_vec();
    for edit in edits.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([edit[0], edit[1]])) % (out.len() + 1);
        match edit[2] % 5 {
            0 if at < out.len() => out[at] = edit[3],
            1 => out.insert(at, edit[3]),
            2 if at < out.len() => drop(out.remove(at)),
            3 => {
                // Moves a run of bytes or lines.
                let to = (at + usize::from(edit[3])).min(out.len());
                out[at..to].rotate_left((to - at) / 2);
            }
            _ => out.truncate(at),
        }
    }
    out
}
