//! One test per rule of the conversion: agent events in, the exact list of AG-UI events out.
//!
//! An event stands in one line: its type, then its members in alphabetical order. The ids of the
//! thread and of the run, and the protocol version, are left out.

mod children;
mod extensions;
mod interrupts;
mod lifecycle;
mod resumed;
mod scene;
mod shared;
mod text;
mod tools;
