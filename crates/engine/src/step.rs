//! Places of the commit where a test may plant a panic. In other builds they do nothing.

/// A place where a test may plant a panic.
#[cfg(not(test))]
#[inline]
pub(crate) fn step() {}

#[cfg(test)]
thread_local! {
    /// Steps that are still to succeed.
    static STEPS_LEFT: std::cell::Cell<Option<u32>> = const { std::cell::Cell::new(None) };
}

/// A place where a test may plant a panic.
#[cfg(test)]
pub(crate) fn step() {
    match STEPS_LEFT.get() {
        Some(0) => {
            STEPS_LEFT.set(None);
            panic!("planted");
        }
        left => STEPS_LEFT.set(left.map(|n| n - 1)),
    }
}

/// Plants a panic in this thread after `after` steps; `None` removes it. Returns whether one is still planted.
#[cfg(test)]
pub(crate) fn plant_panic(after: Option<u32>) -> bool {
    STEPS_LEFT.replace(after).is_some()
}
