//! `fak topo`: pictures of a topology (§6.8).

use fak_abi::json::{Document, Limits, write_value};
use fak_agenttopo::Topology;
use serde_json::json;

use crate::{
    args::{TopoFormat, TopoVerb},
    failure::{Failure, read},
    kind::Kind,
    output::Output,
};

/// The topology in a scenario, if the text is one, and if that has one.
fn of_scenario(text: &[u8]) -> Option<Option<Vec<u8>>> {
    let scenario = Document::parse(text, &Limits::default()).ok()?.into_value();
    let schema = scenario.member("schema")?.as_str()?;
    (schema == "fak.scenario.v1").then(|| {
        scenario.member("topology").map(|topology| {
            let mut bytes = Vec::new();
            write_value(&mut bytes, topology);
            bytes
        })
    })
}

pub(crate) fn topo(verb: &TopoVerb, output: &mut Output) -> Result<u8, Failure> {
    let TopoVerb::Render(args) = verb;
    let text = read(&args.file)?;
    let topology = match of_scenario(&text) {
        Some(Some(text)) => Topology::from_json(&text)
            .map_err(|error| Failure::file(&args.file, format!("topology: {error}")))?,
        Some(None) => return Err(Failure::file(&args.file, "this is a scenario without a \"topology\"")),
        None => {
            Topology::from_json(&text).map_err(|error| Failure::of_kind(&args.file, Kind::Topology, error))?
        }
    };
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
