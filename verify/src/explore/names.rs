//! Names of words and extents, for reports.

use super::access::{Access, Span, Word};
use super::payload::{Payloads, Token};
use super::process::{Awaited, Model, Next, Position, Processes};
use super::world::{Part, World};
use std::collections::BTreeMap;
use unisono_kernel::Rank;
use unisono_kernel::region::Layout;

/// The names of the words and extents of a segment.
#[derive(Debug)]
pub(crate) struct Names(BTreeMap<u64, String>);

impl Names {
    /// The names of a layout.
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut names = BTreeMap::new();
        let params = layout.params();
        let cico = params.cico;
        names.insert(layout.central_count().offset(), "central_count".into());
        for set in 0..cico.map_or(0, |cico| cico.sets) {
            names.insert(layout.set_op(set).offset(), format!("set_op({set})"));
            names.insert(layout.set_bytes(set).offset(), format!("set_bytes({set})"));
            names.insert(layout.set_typesize(set).offset(), format!("set_typesize({set})"));
            for rank in 0..layout.ranks() {
                names.insert(layout.set_count(set, rank).offset(), format!("set_count({set}, {rank})"));
                names.insert(layout.set_rootready(set, rank).offset(), format!("set_rootready({set}, {rank})"));
            }
            names.insert(layout.set_readers(set).offset(), format!("set_readers({set})"));
        }
        for rank in 0..layout.ranks() {
            names.insert(layout.done(rank).offset(), format!("done({rank})"));
            names.insert(layout.acked(rank).offset(), format!("acked({rank})"));
            names.insert(layout.answer(rank).offset(), format!("answer({rank})"));
            names.insert(layout.ready(rank).offset(), format!("ready({rank})"));
            names.insert(layout.arrive(rank).offset(), format!("arrive({rank})"));
            names.insert(layout.release(rank).offset(), format!("release({rank})"));
            for round in 0..layout.rounds() {
                names.insert(layout.round(rank, round).offset(), format!("round({rank}, {round})"));
                for turn in [false, true] {
                    let line = layout.partial(rank, turn, round);
                    names.insert(line.offset(), format!("partial({rank}, {turn}, {round})"));
                    let body = layout.partial_body(rank, turn, round);
                    names.insert(body.offset(), format!("partial head({rank}, {turn}, {round})"));
                    names.insert(body.offset() + 8, format!("partial result({rank}, {turn}, {round})"));
                }
            }
            for line in 0..u64::from(params.lines) {
                names.insert(layout.line(rank, line).offset(), format!("line({rank}, {line})"));
                names.insert(layout.line_body(rank, line, 1).offset(), format!("body({rank}, {line})"));
            }
            for slot in 0..u64::from(params.queue_slots) {
                names.insert(layout.slot(rank, slot).offset(), format!("slot({rank}, {slot})"));
            }
            for (to, mailbox) in (0..layout.ranks()).filter_map(|to| Some((to, layout.mailbox(rank, to)?))) {
                for message in 0..u64::from(mailbox.shape().messages) {
                    names.insert(mailbox.acked(message).offset(), format!("mail_acked({rank} to {to}, {message})"));
                    names.insert(mailbox.head(message).offset(), format!("mail_head({rank} to {to}, {message})"));
                    for slot in 0..u64::from(mailbox.shape().slots) {
                        let of = format!("({rank} to {to}, {message}, {slot})");
                        names.insert(mailbox.sequence(message, slot).offset(), format!("mail_sequence{of}"));
                        names.insert(mailbox.payload(message, slot).offset(), format!("mail_payload{of}"));
                    }
                }
            }
            for slot in 0..cico.map_or(0, |cico| cico.slots) {
                names.insert(layout.control(rank, slot).offset(), format!("control({rank}, {slot})"));
                for receiver in 0..layout.ranks() {
                    let at = layout.control_all(rank, slot, receiver).offset();
                    names.insert(at, format!("control_all({rank}, {slot}, {receiver})"));
                }
                names.insert(layout.fragment(rank, slot).offset(), format!("fragment({rank}, {slot})"));
            }
        }
        Self(names)
    }

    /// The names of all segments of a world; where there are several, with their numbers.
    fn of(world: &World) -> Self {
        let several = world.parts().len() > 1;
        let named = |(number, part): (usize, &Part)| {
            let (begin, prefix) = (part.begin, if several { format!("{number}/") } else { String::new() });
            Self::new(&part.layout).0.into_iter().map(move |(at, name)| (begin + at, format!("{prefix}{name}")))
        };
        Self(world.parts().iter().enumerate().flat_map(named).collect())
    }

    /// The last name before an offset, and the distance from it.
    pub(crate) fn at(&self, offset: u64) -> String {
        match self.0.range(..=offset).next_back() {
            Some((&at, name)) if at == offset => name.clone(),
            Some((at, name)) => format!("{name}+{}", offset - at),
            None => format!("+{offset}"),
        }
    }

    fn word(&self, word: Word) -> String {
        self.at(word.offset)
    }

    /// A name for an extent, and its length.
    pub(crate) fn span(&self, at: Span) -> String {
        format!("{}[..{}]", self.at(at.offset), at.len)
    }

    /// An access and the value that it returned.
    fn access(&self, access: Access, answer: u64, payloads: &Payloads) -> String {
        let bytes = |token| {
            let bytes = payloads.bytes(token);
            let dots = if bytes.len() > 24 { " .." } else { "" };
            format!("{:02x?}{dots}", &bytes[..bytes.len().min(24)])
        };
        match access {
            Access::Load(word) => format!("load {} = {answer}", self.word(word)),
            Access::Store(word, value) => format!("store {} := {value}", self.word(word)),
            Access::Add(word, n) => format!("add {} to {}, was {answer}", n.cast_signed(), self.word(word)),
            Access::Claim(word, from, to) => format!("claim {} {from} -> {to}, was {answer}", self.word(word)),
            Access::BeginWrite(at) => format!("begin to write {}", self.span(at)),
            Access::EndWrite(at, token) => format!("end to write {} := {}", self.span(at), bytes(token)),
            Access::BeginRead(at) => format!("begin to read {}", self.span(at)),
            Access::EndRead(at) => format!("end to read {} = {}", self.span(at), bytes(Token(answer))),
        }
    }

    /// The events for which a poll waits.
    fn awaits(&self, world: &World, awaits: &[Awaited]) -> String {
        let events = awaits.iter().flat_map(|(segment, on)| on.iter().map(|event| (*segment, event.source)));
        let event = |(segment, source)| match world.awaited(segment, source) {
            Some((word, until)) => format!("{} {until:?}", self.word(word)),
            None => format!("{source:?}"),
        };
        events.map(event).collect::<Vec<_>>().join(" or ")
    }

    /// A fault, with the accesses that led to it, one per line, and the position of every process.
    pub(crate) fn report<M: Model>(
        model: &M,
        processes: &Processes<'_, M>,
        world: &World,
        path: impl Iterator<Item = (Rank, Position, u64)>,
        fault: &str,
    ) -> String {
        let (names, payloads) = (Self::of(world), processes.tape().payloads.borrow());
        let mut text = format!("{}: {fault}\n", model.name());
        for (rank, from, answer) in path {
            let node = processes.node(from);
            if let Next::Access(access) = node.next {
                let access = names.access(access, answer, &payloads);
                text += &format!("  rank {rank}  {:<17} {access}\n", model.describe(node.body()));
            }
        }
        for rank in 0..world.ranks() {
            let node = processes.node(world.position(rank));
            let state = match (&node.next, node.awaits()) {
                (Next::Finished, _) => "finished".into(),
                (_, []) => format!("in {}", model.describe(node.body())),
                (_, on) => format!("in {}, waits for {}", model.describe(node.body()), names.awaits(world, on)),
            };
            text += &format!("  rank {rank} {state}\n");
        }
        text
    }
}
