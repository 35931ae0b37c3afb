//! A context with a segment and with messages.

use crate::mailbox::{Mailbox, Peer};
use unisono_kernel::comm::{Comm, Member};
use unisono_kernel::error::Poison;
use unisono_kernel::region::Region;
use unisono_kernel::step::{Awaits, Source};
use unisono_kernel::transport::{Messages, Observe, Shared};

/// A communicator on a segment, and mailboxes: of the same segment, or of one that leaders have between them.
#[derive(Clone, Debug)]
pub struct Levels<R, Q, P> {
    /// The segment.
    pub comm: Comm<R>,
    /// The messages.
    pub mailbox: Mailbox<Q, P>,
}

impl<R: Region, Q, P> Shared for Levels<R, Q, P> {
    type Region = R;
    fn shared(&mut self) -> (&R, &mut Member) {
        self.comm.shared()
    }
}

impl<R, Q: Region, P: AsRef<[Peer]> + AsMut<[Peer]>> Messages for Levels<R, Q, P> {
    type P2p = Mailbox<Q, P>;
    fn messages(&mut self) -> &mut Mailbox<Q, P> {
        &mut self.mailbox
    }
}

impl<R: Region, Q: Region, P: AsRef<[Peer]> + AsMut<[Peer]>> Observe for Levels<R, Q, P> {
    fn ready(&mut self, on: &Awaits) -> bool {
        on.iter().any(|event| match event.source {
            Source::Message(slot) => self.mailbox.is_over(slot),
            _ => self.comm.ready(&Awaits::one(*event)),
        })
    }
    fn poison(&self) -> Option<Poison> {
        self.comm.poison()
    }
}
