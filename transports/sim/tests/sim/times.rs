//! LogGP times, computed by hand: L = 1, o_s = 2, o_r = 3, g = 5, G = 0.5, nine bytes, so (k − 1)·G = 4.

use crate::scripts::{Act, LINK, Script, network, run};
use unisono_kernel::data::buffer::Buf;
use unisono_kernel::msg::bcast::binomial::Binomial;
use unisono_sim::{Class, Count, Fate, Link, Network, Nics, Outcome, Placement, Schedule, Topology, Unfit, World};

const BYTES: usize = 9;

const fn send(to: u32) -> Act {
    Act::Send(to, 0, BYTES, 7)
}

const fn receive(from: u32) -> Act {
    Act::Receive(from, 0, BYTES)
}

/// When each rank is done, in nanoseconds.
fn ends(outcome: &Outcome) -> Vec<f64> {
    let end = |fate: &Fate| match fate {
        Fate::Done(at) => at.ns(),
        other => panic!("{other:?}"),
    };
    outcome.fates.iter().map(end).collect()
}

fn times<const P: usize>(network: Network, scripts: [&[Act]; P]) -> Vec<f64> {
    let mut scripts = scripts.map(|acts| Script::new(acts.iter().copied())).into();
    ends(&run(network, Schedule::default(), &mut scripts))
}

/// A binomial broadcast from rank 0, a rank per node.
fn binomial(topology: Topology, ranks: u32) -> Outcome {
    let world = World::new(network(topology), Placement::blocks(ranks, ranks).unwrap(), Schedule::default()).unwrap();
    let mut data = vec![[7; BYTES]];
    data.resize(ranks as usize, [0; BYTES]);
    let ends = world.endpoints().into_iter().zip(&mut data).zip(0..);
    // SAFETY: `data` outlives the run.
    let machine = |(bytes, rank)| unsafe { Binomial::new(rank, ranks, Buf::of_mut(bytes), 0, 1) }.unwrap();
    let mut ranks: Vec<_> = ends.map(|((end, bytes), rank)| (end, machine((bytes, rank)))).collect();
    let outcome = world.run(&mut ranks);
    assert!(data.iter().all(|bytes| *bytes == [7; BYTES]));
    outcome
}

#[test]
fn one_message() {
    for topology in [Topology::Star, Topology::Crossbar, Topology::FatTree { nodes_per_leaf: 1, uplinks: 1 }] {
        // o_s + 4; o_s + 4 + L + o_r.
        assert_eq!(times(network(topology), [&[send(1)], &[receive(0)]]), [6.0, 10.0], "{topology:?}");
    }
}

#[test]
fn no_bytes_travel_as_one() {
    for bytes in [0, 1] {
        let acts = (&[Act::Send(1, 0, bytes, 7)], &[Act::Receive(0, 0, bytes)]);
        // o_s; o_s + L + o_r.
        assert_eq!(times(network(Topology::Crossbar), [acts.0, acts.1]), [2.0, 6.0]);
    }
}

#[test]
fn a_ping_pong_is_twice_as_long() {
    let there_and_back = times(network(Topology::Crossbar), [&[send(1), receive(1)], &[receive(0), send(0)]]);
    assert_eq!(there_and_back, [20.0, 16.0]);
}

#[test]
fn the_gap_or_the_overhead_lies_between_two_messages() {
    // Last bytes leave at 6, 6 + max(g, o_s) + 4 = 15, 24: LogGP's o + (k−1)G + max(g, o) + (k−1)G + …
    let flat: [&[Act]; 4] = [&[send(1), send(2), send(3)], &[receive(0)], &[receive(0)], &[receive(0)]];
    for topology in [Topology::Star, Topology::Crossbar] {
        assert_eq!(times(network(topology), flat), [24.0, 10.0, 19.0, 28.0], "{topology:?}");
    }
    let slow = Link { send: 8.0, ..LINK };
    // First bytes at 8, 12 + 8, 24 + 8.
    assert_eq!(times(Network { leaf: slow, ..network(Topology::Crossbar) }, flat), [36.0, 16.0, 28.0, 40.0]);
}

#[test]
fn binomial_broadcasts() {
    // Two: as one message. Three: 0 → 2, then 0 → 1, which leaves at 15.
    for topology in [Topology::Star, Topology::Crossbar] {
        assert_eq!(ends(&binomial(topology, 2)), [6.0, 10.0]);
        assert_eq!(ends(&binomial(topology, 3)), [15.0, 19.0, 10.0]);
    }
    // Four: 2 → 3 is ready at 12. On a crossbar it leaves at once; on a star 0 → 1 occupies the switch from 11 to 15,
    // and then g passes.
    assert_eq!(ends(&binomial(Topology::Crossbar, 4)), [15.0, 19.0, 16.0, 20.0]);
    assert_eq!(ends(&binomial(Topology::Star, 4)), [15.0, 19.0, 24.0, 28.0]);
}

#[test]
fn pairs_meet_on_a_star_and_nowhere_on_a_crossbar() {
    let pairs: [&[Act]; 4] = [&[send(1)], &[receive(0)], &[send(3)], &[receive(2)]];
    assert_eq!(times(network(Topology::Crossbar), pairs), [6.0, 10.0, 6.0, 10.0]);
    assert_eq!(times(network(Topology::Star), pairs), [6.0, 10.0, 15.0, 19.0]);
}

#[test]
fn three_senders_wait_at_the_receivers_port() {
    let gather: [&[Act]; 4] = [&[receive(1), receive(2), receive(3)], &[send(0)], &[send(0)], &[send(0)]];
    // First bytes come at 3 and pass at 3, 12, 21; last bytes at 7, 16, 25; o_r fits between them.
    assert_eq!(times(network(Topology::Crossbar), gather)[0], 28.0);
    // With o_r = 20 the receiver is the bottleneck: 7 + 3 · 20.
    let slow = Link { receive: 20.0, ..LINK };
    assert_eq!(times(Network { leaf: slow, ..network(Topology::Crossbar) }, gather)[0], 67.0);
}

#[test]
fn up_links_are_shared() {
    let cross: [&[Act]; 4] = [&[send(2)], &[send(3)], &[receive(0)], &[receive(1)]];
    let tree = |uplinks| network(Topology::FatTree { nodes_per_leaf: 2, uplinks });
    // One link: the second message passes it at 11. Two: each has its own, by its destination.
    assert_eq!(times(tree(1), cross), [6.0, 6.0, 10.0, 19.0]);
    assert_eq!(times(tree(2), cross), [6.0, 6.0, 10.0, 10.0]);
    // Down-links are links of their own: 0 → 2 and 3 → 1 pass nothing in common.
    let there_and_back: [&[Act]; 4] = [&[send(2)], &[receive(3)], &[receive(0)], &[send(1)]];
    assert_eq!(times(tree(1), there_and_back), [6.0, 10.0, 10.0, 6.0]);
    // 0 → 4 and 2 → 5 come from two leaves into one: they share its down-link.
    let idle: &[Act] = &[];
    let into_one: [&[Act]; 6] = [&[send(4)], idle, &[send(5)], idle, &[receive(0)], &[receive(2)]];
    assert_eq!(times(tree(1), into_one)[4..], [10.0, 19.0]);
}

#[test]
fn classes_have_their_own_links_and_counts() {
    let with = |latency| Link { latency, ..LINK };
    let topology = Topology::FatTree { nodes_per_leaf: 2, uplinks: 1 };
    let network = Network {
        topology,
        numa: None,
        socket: None,
        nics: Nics::default(),
        node: with(1.0),
        leaf: with(10.0),
        spine: with(100.0),
    };
    // Two ranks on each of four nodes. 0 → 1 inside, 2 → 0 through a leaf switch, 3 → 4 through the tree.
    let acts: [&[Act]; 8] =
        [&[send(1), receive(2)], &[receive(0)], &[send(0)], &[send(4)], &[receive(3)], &[], &[], &[]];
    let world = World::new(network, Placement::blocks(8, 4).unwrap(), Schedule::default()).unwrap();
    let scripts = acts.map(|acts| Script::new(acts.iter().copied()));
    let mut ranks: Vec<_> = world.endpoints().into_iter().zip(scripts).collect();
    let outcome = world.run(&mut ranks);
    // 3 shares its node's port with 2: its first byte leaves at 11. 2 + 4 + 10 + 3; 11 + 4 + 100 + 3.
    assert_eq!(ends(&outcome), [19.0, 10.0, 6.0, 15.0, 118.0, 0.0, 0.0, 0.0]);
    assert_eq!(outcome.traffic.of(Class::Numa), Count::default());
    for class in [Class::Node, Class::Leaf, Class::Spine] {
        assert_eq!(outcome.traffic.of(class), Count { messages: 1, bytes: BYTES as u64 }, "{class}");
    }
    assert_eq!(outcome.last().unwrap().ns(), 118.0);
}

#[test]
fn numa_nodes_have_links_of_their_own() {
    let crossbar = Network { node: Link { latency: 10.0, ..LINK }, ..network(Topology::Crossbar) };
    let with = Network { numa: Some(LINK), ..crossbar };
    // Three ranks on a node of two NUMA nodes: 0 → 1 inside one of them, 2 → 0 from the other.
    let acts: [&[Act]; 3] = [&[send(1), receive(2)], &[receive(0)], &[send(0)]];
    let all = Placement::blocks(3, 1).unwrap();
    let parted = all.clone().with_numa(2).unwrap();
    for (placement, network, inside, end) in
        [(&parted, with, 1, 10.0), (&all, with, 0, 19.0), (&parted, crossbar, 1, 19.0)]
    {
        let world = World::new(network, placement.clone(), Schedule::default()).unwrap();
        let scripts = acts.map(|acts| Script::new(acts.iter().copied()));
        let mut ranks: Vec<_> = world.endpoints().into_iter().zip(scripts).collect();
        let outcome = world.run(&mut ranks);
        assert_eq!(ends(&outcome), [19.0, end, 6.0]);
        assert_eq!(outcome.traffic.of(Class::Numa).messages, inside);
        assert_eq!(outcome.traffic.of(Class::Node).messages, 2 - inside);
    }
}

/// Two packages: one message between them takes the socket's L; a second one from the same package waits at its port; messages
/// inside a package wait for none of these.
#[test]
fn packages_share_a_port_and_have_a_link_of_their_own() {
    let socket = Link { latency: 30.0, gap: 7.0, gap_per_byte: 2.0, ..LINK };
    let base = network(Topology::Crossbar);
    let run = |network: Network, placement: Placement, acts: [&[Act]; 4]| {
        let world = World::new(network, placement, Schedule::default()).unwrap();
        let scripts = acts.map(|acts| Script::new(acts.iter().copied()));
        let mut ranks: Vec<_> = world.endpoints().into_iter().zip(scripts).collect();
        let outcome = world.run(&mut ranks);
        (ends(&outcome), outcome.traffic.of(Class::Socket).messages)
    };
    let node = || Placement::blocks(4, 1).unwrap();
    let (packages, numa) = (node().with_packages(2, 1).unwrap(), node().with_packages(1, 2).unwrap());
    let with = Network { socket: Some(socket), ..base };
    // 0 → 2 and 1 → 3. Inside one package, or without a link of their own: two messages beside each other.
    let across: [&[Act]; 4] = [&[send(2)], &[send(3)], &[receive(0)], &[receive(1)]];
    let alone = LINK.send + LINK.gap_per_byte * (BYTES - 1) as f64 + LINK.latency + LINK.receive;
    for (network, placement) in [(with, numa.clone()), (with, node()), (base, packages.clone())] {
        let (ends, counted) = run(network, placement, across);
        assert_eq!((ends[2..].to_vec(), counted), (vec![alone; 2], 0));
    }
    // Through the package's port, which takes (k − 1)·2 for each byte, and 7 from one message to the next.
    let stream = 2.0 * (BYTES - 1) as f64;
    let first = LINK.send + stream + socket.latency + LINK.receive;
    let (ends, counted) = run(with, packages.clone(), across);
    assert_eq!((ends[2..].to_vec(), counted), (vec![first, first + stream + socket.gap], 2));
    // Inside the packages: 0 → 1 and 2 → 3 at the same time.
    let (ends, counted) = run(with, packages, [&[send(1)], &[receive(0)], &[send(3)], &[receive(2)]]);
    assert_eq!((ends[1], ends[3], counted), (alone, alone, 0));
}

/// Two nodes of two packages each. One network port for all ranks, one for each package, and one in the first package, which the
/// second one reaches across the socket.
#[test]
fn network_ports_sit_in_packages() {
    let socket = Link { latency: 30.0, gap: 0.0, gap_per_byte: 0.0, ..LINK };
    let run = |nics: &[u8]| {
        let nics = Nics::try_from(nics.to_vec()).unwrap();
        let network = Network { socket: Some(socket), nics, ..network(Topology::Crossbar) };
        let placement = Placement::blocks(4, 2).unwrap().with_packages(2, 1)?;
        let world = World::new(network, placement, Schedule::default())?;
        // 0 → 2 from the first package to the first one, 1 → 3 from the second one to the second one.
        let acts: [&[Act]; 4] = [&[send(2)], &[send(3)], &[receive(0)], &[receive(1)]];
        let scripts = acts.map(|acts| Script::new(acts.iter().copied()));
        let mut ranks: Vec<_> = world.endpoints().into_iter().zip(scripts).collect();
        Ok::<_, Unfit>(ends(&world.run(&mut ranks))[2..].to_vec())
    };
    let stream = LINK.gap_per_byte * (BYTES - 1) as f64;
    let alone = LINK.send + stream + LINK.latency + LINK.receive;
    assert_eq!(run(&[]).unwrap(), [alone, alone + stream + LINK.gap], "one port");
    assert_eq!(run(&[0, 1]).unwrap(), [alone, alone], "one in each package");
    assert_eq!(run(&[0, 0]).unwrap(), [alone, alone + 2.0 * socket.latency], "two in the first: rank 1 crosses twice");
    assert_eq!(run(&[2]).unwrap_err().to_string(), "package of nics is 2, must be between 0 and 1");
    assert_eq!(Nics::try_from(vec![0; 9]).unwrap_err().to_string(), "number of nics is 9, must be between 0 and 8");
}

#[test]
fn thousands_of_ranks() {
    // Twelve rounds of 1 byte on a crossbar whose gap is no longer than o_s: 12 · (o_s + L + o_r).
    let link = Link { gap: 2.0, ..LINK };
    let network = Network {
        topology: Topology::Crossbar,
        numa: None,
        socket: None,
        nics: Nics::default(),
        node: link,
        leaf: link,
        spine: link,
    };
    let world = World::new(network, Placement::blocks(4096, 4096).unwrap(), Schedule::default()).unwrap();
    let mut data = vec![[0u8; 1]; 4096];
    data[0] = [9];
    let mut ranks: Vec<_> = (world.endpoints().into_iter().zip(&mut data).zip(0..))
        // SAFETY: `data` outlives the run.
        .map(|((end, byte), rank)| (end, unsafe { Binomial::new(rank, 4096, Buf::of_mut(byte), 0, 1) }.unwrap()))
        .collect();
    let outcome = world.run(&mut ranks);
    assert_eq!(outcome.last().unwrap().ns(), 12.0 * 6.0);
    assert_eq!(outcome.traffic.of(Class::Leaf).messages, 4095);
    assert!(data.iter().all(|byte| *byte == [9]));
}
