//! How a rank's pages come to lie on its NUMA node: by first touch, and on request by `mbind` too.
//!
//! First touch places pages on the node where the owner runs at that moment. A policy on the range itself holds
//! whoever touches it and whenever, also for pages that are given back and come again. Containers often forbid
//! the call; then first touch stays, and the refusal is reported.

use crate::error::PosixError;
use crate::sys;
use core::fmt;

/// Environment: overrides what is asked for.
pub const MBIND: &str = "UNISONO_MBIND";

/// A policy for each rank's own range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// None but first touch.
    #[default]
    FirstTouch,
    /// `MPOL_PREFERRED`: the owner's node, another one where it is full.
    Preferred,
    /// `MPOL_BIND`: the owner's node alone. Where that is full the start-up fails, or the kernel kills a process.
    Bind,
}

impl Policy {
    /// By name: `none`, `preferred` or `bind`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "none" => Some(Self::FirstTouch),
            "preferred" => Some(Self::Preferred),
            "bind" => Some(Self::Bind),
            _ => None,
        }
    }

    /// What the environment asks for, else this.
    ///
    /// # Errors
    /// It asks for something else.
    pub(crate) fn decide(self) -> Result<Self, PosixError> {
        sys::setting(MBIND, "none, preferred or bind", Self::from_name).map(|found| found.unwrap_or(self))
    }

    /// The kernel's number for it.
    pub(crate) const fn mode(self) -> Option<i32> {
        match self {
            Self::FirstTouch => None,
            Self::Preferred => Some(sys::MPOL_PREFERRED),
            Self::Bind => Some(sys::MPOL_BIND),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FirstTouch => "none",
            Self::Preferred => "preferred",
            Self::Bind => "bind",
        })
    }
}
