//! `fak topo`: pictures of a topology (§6.8).

use fak_agenttopo::Topology;
use serde_json::json;

use crate::{
    args::{TopoFormat, TopoVerb},
    failure::{Failure, read},
    kind::Kind,
    output::Output,
};

pub(crate) fn topo(verb: &TopoVerb, output: &mut Output) -> Result<u8, Failure> {
    let TopoVerb::Render(args) = verb;
    let text = read(&args.file)?;
    let topology = Topology::from_json(&text).map_err(|error| {
        // A scenario has a topology in it, so it is often given instead of one.
        if String::from_utf8_lossy(&text).contains("\"fak.scenario.v1\"") {
            let hint = "this is a scenario: put its \"topology\" into a file of its own";
            return Failure::file(&args.file, format!("{error}; {hint}"));
        }
        Failure::of_kind(&args.file, Kind::Topology, error)
    })?;
    let picture = match args.format {
        TopoFormat::Dot => topology.to_dot(),
        TopoFormat::Mermaid => topology.to_mermaid(),
    };
    if output.json() {
        let waves: Vec<Vec<&str>> = topology
            .waves()
            .iter()
            .map(|wave| wave.iter().map(|member| member.id().as_str()).collect())
            .collect();
        let path: Vec<&str> = topology.critical_path().iter().map(|member| member.id().as_str()).collect();
        let json = json!({
            "name": topology.name().as_str(),
            "edges": topology.edge_count(),
            "waves": waves,
            "critical_path": path,
            "picture": picture,
        });
        output.text(json.to_string())?;
    } else {
        output.text(picture)?;
    }
    Ok(0)
}
