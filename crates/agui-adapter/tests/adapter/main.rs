//! The conversion as a whole: captured streams, every rule, and anything at all.

#[cfg(test)]
mod any_run;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod support;
#[cfg(test)]
mod thread;
