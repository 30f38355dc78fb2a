//! Explaining an act: every rung asked, nothing counted, nothing written (§3.5).

use fak_abi::{
    Capability, Explanation, Opinion, RungName, RungOpinion, SiteInfo, Tool, ToolCall, Verdict, VerdictKind,
    json,
};

use crate::fold::ask;
use crate::kernel::Kernel;
use crate::sites;

impl Kernel {
    pub(crate) fn explain_call(&self, call: &ToolCall<'_>) -> Explanation {
        let chain = match self.ready(call) {
            Some(chain) => chain,
            None => {
                let (refusal, by) = self.unready(call);
                let site = Self::site(refusal.site.check()).copied();
                let next = self.next_step(call, (site, refusal.lacks), refusal.reason.advice());
                let empty = Explanation {
                    rungs: Vec::new(),
                    verdict: Verdict::Defer { by },
                    site: None,
                    next: String::new(),
                };
                return empty.decided(Verdict::deny(refusal, by), site, next);
            }
        };
        let desk = self.desk();
        let rungs = chain
            .rungs
            .iter()
            .map(|rung| match ask(rung, call, &desk) {
                Some(opinion) => as_data(rung.name, &opinion),
                None => RungOpinion {
                    by: rung.name,
                    verdict: VerdictKind::Deny,
                    reason: Some(fak_abi::Reason::DefaultDeny),
                    site: Some(sites::PANIC.site()),
                },
            })
            .collect();
        let verdict = match self.judged(chain, call) {
            Ok((by, None)) => Verdict::allow(by),
            Ok((by, Some(args))) => Verdict::Transform { args, by },
            Err((refusal, by)) => Verdict::deny(refusal, by),
        };
        let site = verdict.refusal().and_then(|refusal| {
            let check = refusal.site.check();
            let of_rungs = chain.rungs.iter().flat_map(|rung| rung.judge.sites());
            of_rungs.chain(sites::KERNEL_SITES).find(|info| info.check == check).copied()
        });
        let advice = verdict.reason().map_or("nothing: the act is allowed", fak_abi::Reason::advice);
        let lacks = verdict.refusal().and_then(|refusal| refusal.lacks);
        let mut next = self.next_step(call, (site, lacks), advice);
        let decider =
            chain.rungs.iter().find(|rung| verdict.refusal().is_some() && rung.name == verdict.by());
        let hint = decider.and_then(|rung| self.guarded(|| rung.judge.hint(call)).flatten());
        if let Some(hint) = hint {
            next = format!("{next}; {hint}");
        }
        Explanation { rungs, verdict, site, next }
    }

    /// What to do next: have the capability granted that is missing, or the check's own advice, with the nearest tool where the tool
    /// is unknown.
    fn next_step(
        &self,
        call: &ToolCall<'_>,
        (site, lacks): (Option<SiteInfo>, Option<Capability>),
        advice: &str,
    ) -> String {
        if let Some(capability) = lacks {
            return format!("ask the host to grant {capability}");
        }
        let mut next = site.map_or(advice, |info| info.next).to_owned();
        if let Tool::Outside(token) = call.tool()
            && token.index().is_none()
            && let Some(near) = json::nearest(token.name(), self.tool_names())
        {
            next = format!("{next}; did you mean {near:?}?");
        }
        next
    }
}

fn as_data(by: RungName, opinion: &Opinion) -> RungOpinion {
    let (reason, site) = match opinion {
        Opinion::Deny(refusal) => (Some(refusal.reason), Some(refusal.site)),
        _ => (None, None),
    };
    RungOpinion { by, verdict: opinion.kind(), reason, site }
}
