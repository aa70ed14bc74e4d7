//! The conversion as a whole: captured streams, known faults, and anything at all.

#[cfg(test)]
mod anything;
#[cfg(test)]
mod conversion;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod property;
#[cfg(test)]
mod rules;
#[cfg(test)]
mod support;
