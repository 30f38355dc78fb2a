//! A host's own rungs (§2.9, §3.2, §3.4): one keeps secrets from being shared, and one lets a tool of the host run
//! only when somebody confirms its claim.
#![expect(clippy::print_stdout, reason = "an example tells its story")]

use std::{error::Error, sync::Arc};

use fak_abi::{
    Adjudicator, Capability::RefWiden, Claim, Desk, Gate as _, Id, Opinion, PrincipalSpec, Reason, RungName,
    ShareScope, SiteInfo, Testimony, ToolCall, ToolScope, WitnessResolver,
};
use fak_adjudicate::{Kernel, Rank};

/// Looks into what is about to be shared. Names a capability's tool, so it sees every act that the capability opens.
struct NoSecrets;

const SECRET: SiteInfo = SiteInfo {
    check: "office/secret",
    clause: "§3.2",
    refuses: "sharing a text with a password in it",
    next: "take the password out",
};

impl Adjudicator for NoSecrets {
    fn name(&self) -> RungName {
        "office/secrets"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["ref.widen"])
    }

    fn judge(&self, call: &ToolCall<'_>, desk: &Desk<'_>) -> Opinion {
        let Some(bytes) = call.body().and_then(|body| desk.resolver.bytes(body).ok()) else {
            return Opinion::Defer;
        };
        if String::from_utf8_lossy(&bytes).contains("password=") {
            return Opinion::deny(Reason::SecretExfil, SECRET.site());
        }
        Opinion::Defer
    }

    fn sites(&self) -> &'static [SiteInfo] {
        &[SECRET]
    }
}

/// Lets a deployment happen if somebody confirms that the tests passed.
struct Deployments(Claim);

impl Adjudicator for Deployments {
    fn name(&self) -> RungName {
        "office/deployments"
    }

    fn tools(&self) -> ToolScope {
        ToolScope::only(["deploy.run"])
    }

    fn judge(&self, call: &ToolCall<'_>, _desk: &Desk<'_>) -> Opinion {
        let subject = call.body().map(fak_abi::Ref::digest);
        Opinion::RequireWitness(Box::new(Claim { subject, ..self.0.clone() }))
    }
}

/// Knows which build passed.
struct TestBoard(fak_abi::Digest);

impl WitnessResolver for TestBoard {
    fn resolve(&self, claim: &Claim, _call: &ToolCall<'_>) -> Testimony {
        match claim.subject {
            Some(subject) if subject == self.0 => Testimony::Confirm,
            _ => Testimony::Abstain,
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let kernel = Kernel::builder()
        .rung(Rank(10), Arc::new(NoSecrets))
        .rung(
            Rank(20),
            Arc::new(Deployments(Claim {
                statement: Id::new("tests passed")?,
                subject: None,
                evidence: None,
            })),
        )
        .witness(TestBoard(fak_abi::Digest::of(b"build 7")))
        .build()?;
    let alpha =
        kernel.attach(PrincipalSpec::agent(Id::new("alpha")?).fleet(Id::new("f1")?).caps([RefWiden]))?;

    for text in ["the build is green", "user=root password=hunter2"] {
        println!("share {text:?}: {}", alpha.widen(&alpha.mint(text), ShareScope::Fleet).verdict());
    }
    let deploy = kernel.tool(&Id::new("deploy.run")?);
    for build in ["build 7", "build 8"] {
        let body = alpha.mint(build);
        println!("deploy {build:?}: {}", alpha.decide(&ToolCall::new(&alpha, &deploy).args(&body)));
    }
    let unknown = kernel.tool(&Id::new("deploy.rum")?);
    println!("a tool nobody knows: {}", alpha.decide(&ToolCall::new(&alpha, &unknown)));
    println!("explain says: {}", kernel.explain(&ToolCall::new(&alpha, &unknown)).next);
    Ok(())
}
