//! Parameters: their JSON form, and values that are refused.

use unisono_sim::{Dropped, Link, Network, Placement, Schedule, Topology, World};

fn refused(network: Network) -> String {
    let world = World::new(network, Placement::blocks(4, 4).unwrap(), Schedule::default());
    world.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn json() {
    let text = r#"{"topology": {"fattree": {"nodes_per_leaf": 16, "uplinks": 8}},
        "numa":  {"L": 60,   "os": 50,  "or": 50,  "g": 20, "G": 0.05},
        "node":  {"L": 100,  "os": 50,  "or": 50,  "g": 20, "G": 0.05},
        "socket": {"L": 160, "os": 50,  "or": 50,  "g": 5,  "G": 0.02},
        "leaf":  {"L": 1000, "os": 200, "or": 200, "g": 50, "G": 0.08},
        "spine": {"L": 1600, "os": 200, "or": 200, "g": 50, "G": 0.08}}"#;
    let network: Network = serde_json::from_str(text).unwrap();
    assert_eq!(network, Network::new(Topology::FatTree { nodes_per_leaf: 16, uplinks: 8 }));
    assert_eq!(serde_json::from_str::<Network>(&serde_json::to_string(&network).unwrap()).unwrap(), network);
    let (begin, end) = (text.find("\"numa\"").unwrap(), text.find("\"node\"").unwrap());
    let without: Network = serde_json::from_str(&format!("{}{}", &text[..begin], &text[end..])).unwrap();
    assert_eq!(without, Network { numa: None, ..network });
    let nics = |list: &str| {
        serde_json::from_str::<Network>(&text.replacen("\"leaf\"", &format!("\"nics\": {list}, \"leaf\""), 1))
    };
    assert_eq!(nics("[0, 1]").unwrap().nics.packages(), [0, 1]);
    assert!(nics("[0,0,0,0,0,0,0,0,0]").unwrap_err().to_string().contains("number of nics is 9"));
    for (from, to, words) in [
        ("\"g\": 20, ", "", "missing field `g`"),
        ("\"L\": 100, ", "\"L\": 100, \"O\": 1,", "unknown field `O`"),
        ("fattree", "torus", "unknown variant `torus`"),
        ("\"L\": 1000", "\"L\": -1", "a link's time is -1, must be between 0 and 1000000000 at line 5"),
        ("0.08}}", "1e7}}", "a link's time per byte is 10000000, must be between 0 and 1000000 at line 6"),
    ] {
        let error = serde_json::from_str::<Network>(&text.replace(from, to)).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    let base = Network::new(Topology::Crossbar);
    for (link, words) in [
        (Link { latency: -1.0, ..base.leaf }, "leaf.L is -1, must be between 0 and 1000000000"),
        (Link { send: f64::NAN, ..base.leaf }, "leaf.os is NaN"),
        (Link { receive: f64::INFINITY, ..base.leaf }, "leaf.or is inf"),
        (Link { gap: 2e9, ..base.leaf }, "leaf.g is 2000000000"),
        (Link { gap_per_byte: 1e7, ..base.leaf }, "leaf.G is 10000000, must be between 0 and 1000000"),
    ] {
        assert!(refused(Network { leaf: link, ..base }).starts_with(words), "{words}");
    }
    for (nodes_per_leaf, uplinks, name) in [(0, 1, "nodes_per_leaf"), (1, 0, "uplinks"), (1, 1 << 20, "uplinks")] {
        let error = refused(Network::new(Topology::FatTree { nodes_per_leaf, uplinks }));
        assert!(error.starts_with(&format!("fattree.{name} is ")), "{error}");
    }
    let many = Network::new(Topology::FatTree { nodes_per_leaf: 1, uplinks: 1 << 16 });
    let world = World::new(many, Placement::blocks(1 << 20, 1 << 20).unwrap(), Schedule::default());
    let error = world.map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "fattree.uplinks is 65536, must be between 1 and 16");
}

#[test]
fn absurd_schedules_are_refused() {
    let plain = Schedule::default();
    for (schedule, words) in [
        (Schedule { delay: -1.0, ..plain.clone() }, "delay is -1"),
        (Schedule { skew: f64::NAN, ..plain.clone() }, "skew is NaN"),
        (Schedule { stragglers: 5, ..plain.clone() }, "stragglers is 5, must be between 0 and 4"),
        (Schedule { slowdown: 0.5, ..plain.clone() }, "slowdown is 0.5"),
        (Schedule { deadline: -1.0, ..plain.clone() }, "deadline is -1"),
        (Schedule { dropped: vec![Dropped { rank: 4, polls: 0 }], ..plain.clone() }, "dropped rank is 4"),
    ] {
        let world = World::new(Network::new(Topology::Star), Placement::blocks(4, 4).unwrap(), schedule);
        let error = world.map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

#[test]
fn ranks_and_nodes() {
    for (ranks, nodes, words) in
        [(0, 1, "ranks is 0"), (4, 0, "nodes is 0"), (4, 5, "nodes is 5, must be between 1 and 4")]
    {
        assert!(Placement::blocks(ranks, nodes).unwrap_err().to_string().starts_with(words), "{words}");
    }
    let placement = Placement::blocks(10, 4).unwrap();
    assert_eq!((0..10).map(|rank| placement.node(rank)).collect::<Vec<_>>(), [0, 0, 0, 1, 1, 2, 2, 2, 3, 3]);
    assert_eq!(Placement::new(vec![0, 2, 0]).unwrap().nodes(), 3);
    assert_eq!(Placement::new(vec![0, 9]).unwrap_err().to_string(), "nodes is 10, must be between 1 and 2");
    assert!(Placement::new(Vec::new()).is_err());
    let turns = Placement::in_turns(7, 3).unwrap();
    assert_eq!((0..7).map(|rank| turns.node(rank)).collect::<Vec<_>>(), [0, 1, 2, 0, 1, 2, 0]);
    assert_eq!(turns.numa(0), None);
    let parted = turns.with_numa(2).unwrap();
    assert_eq!(
        (0..8).map(|rank| parted.numa(rank)).collect::<Vec<_>>(),
        [0, 0, 0, 0, 1, 1, 1].map(Some).into_iter().chain([None]).collect::<Vec<_>>()
    );
    assert_eq!(parted.with_numa(8).unwrap_err().to_string(), "NUMA nodes is 8, must be between 1 and 7");
}
