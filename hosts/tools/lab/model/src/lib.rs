//! Models of the papers as pure functions: the time of an operation, from measured parameters.
//!
//! Nothing here measures or runs anything. [`logp`] and [`barrier`] are paper P4's, [`adaptive`] its
//! AdaptiveBarrierLogP, [`chi2`] its test of model against measurement; [`queue`] is paper P1's queue of
//! slots; [`segment`] predicts the algorithms over a segment from such parameters (ours); [`hockney`] and [`bagds`] are
//! paper P5's network and its block all-to-all, [`speedup`] its measures of a program. [`figure`] puts the papers' figures together that follow from formulas
//! alone. [`groups`] sorts readings of cores that a host moves. docs/explanation/papers.md compares them with the papers.
//!
//! Times have no unit of their own: a result is in the unit of the parameters.

#![forbid(unsafe_code)]

pub mod adaptive;
pub mod bagds;
pub mod barrier;
pub mod chi2;
mod error;
pub mod figure;
pub mod groups;
pub mod hockney;
pub mod logp;
pub mod queue;
pub mod segment;
pub mod speedup;
pub mod stats;

pub use error::{Bound, ModelError};
