//! Communicators between threads. One binary, since each of these files needs the same machines compiled.

mod barriers;
mod blocking;
mod claims;
mod ends;
mod lent;
mod members;
mod roots;
mod starts;
