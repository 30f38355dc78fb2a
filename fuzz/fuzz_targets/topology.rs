//! Topology documents: what is accepted is acyclic, and its waves and pictures say so (§6.8, §8).

#![no_main]

use std::collections::HashMap;

use fak_agenttopo::Topology;
use fak_fuzz::frugal;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(topology) = frugal(data.len(), 1_200, || Topology::from_json(data)) else { return };
    let waves = topology.waves();
    let rank: HashMap<_, _> = waves
        .iter()
        .enumerate()
        .flat_map(|(at, wave)| wave.iter().map(move |member| (member.id(), at)))
        .collect();
    assert_eq!(rank.len(), topology.group().size());
    assert_eq!(waves.iter().map(Vec::len).sum::<usize>(), rank.len());
    for (from, to) in topology.edges() {
        assert!(rank[from] < rank[to]);
        let around = topology.neighbors(from).expect("a member");
        assert!(around.to.iter().any(|member| member.id() == to));
    }
    assert_eq!(topology.critical_path().len(), waves.len());
    assert_eq!(topology.edges().count(), topology.edge_count());
    let (dot, mermaid) = (topology.to_dot(), topology.to_mermaid());
    assert!(dot.lines().count() >= topology.edge_count() && mermaid.lines().count() >= topology.edge_count());
});
