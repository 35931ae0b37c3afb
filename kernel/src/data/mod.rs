//! User memory that a call reads and writes.
//!
//! | file | what |
//! |---|---|
//! | `buffer` | an address and a length |
//! | `datatype` | datatypes, and data of a datatype |
//! | `blocks` | one block per rank, equal or not |

pub mod blocks;
pub mod buffer;
pub mod datatype;
