//! User memory: what a call reads and writes.
//!
//! | file | what |
//! |---|---|
//! | `buffer` | an address and a length |
//! | `datatype` | elements with holes, and a message of them |
//! | `blocks` | a block for each process, equal or not |

pub mod blocks;
pub mod buffer;
pub mod datatype;
