//! The words of the vocabulary as a scenario writes them.

/// stand-in
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locale {
    InKernel,
    Session,
    Window,
}
/// stand-in
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareScope {
    Agent,
    Fleet,
    Tenant,
}
/// stand-in
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taint {
    Trusted,
    Tainted,
    Quarantined,
}
/// stand-in
pub(crate) type Capability = String;

/// Locales by name.
pub(crate) const LOCALES: [(&str, Locale); 3] = [
    ("in_kernel", Locale::InKernel),
    ("session", Locale::Session),
    ("window", Locale::Window),
];

/// Scopes a body can have, by name.
pub(crate) const SCOPES: [(&str, ShareScope); 3] = [
    ("agent", ShareScope::Agent),
    ("fleet", ShareScope::Fleet),
    ("tenant", ShareScope::Tenant),
];

/// Taints by name.
pub(crate) const TAINTS: [(&str, Taint); 3] = [
    ("trusted", Taint::Trusted),
    ("tainted", Taint::Tainted),
    ("quarantined", Taint::Quarantined),
];
