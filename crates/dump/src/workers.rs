//! Runs jobs in parallel, each worker with its own connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::Result;

/// Runs all jobs in their order, several at a time. After a failure no more are begun; the first error is returned.
pub fn parallel<W, J: Send>(
    workers: usize,
    jobs: Vec<J>,
    start: impl Fn(usize) -> Result<W> + Sync,
    one: impl Fn(&mut W, J) -> Result<()> + Sync,
) -> Result<()> {
    let jobs = Mutex::new(jobs.into_iter());
    let failed = AtomicBool::new(false);
    let next = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next().filter(|_| !failed.load(Ordering::Relaxed));
    let work = |number: usize| -> Result<()> {
        let result = start(number).and_then(|mut worker| {
            while let Some(job) = next() {
                one(&mut worker, job)?;
            }
            Ok(())
        });
        result.inspect_err(|_| failed.store(true, Ordering::Relaxed))
    };
    std::thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..workers).map(|number| scope.spawn(move || work(number))).collect();
        let results: Vec<Result<()>> =
            threads.into_iter().map(|t| t.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))).collect();
        results.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_jobs_are_done_or_the_failure_comes_out() {
        let done = Mutex::new(Vec::new());
        let note = |_: &mut usize, job: u32| {
            done.lock().unwrap().push(job);
            if job == 7 { Err("seven".to_owned()) } else { Ok(()) }
        };
        parallel(3, (10..30).collect(), Ok, note).unwrap();
        let mut all = std::mem::take(&mut *done.lock().unwrap());
        all.sort_unstable();
        assert_eq!(all, (10..30).collect::<Vec<_>>());
        assert_eq!(parallel(1, (5..30).collect(), Ok, note), Err("seven".to_owned()));
        assert_eq!(*done.lock().unwrap(), [5, 6, 7]);
        assert_eq!(parallel(2, vec![1], |_| Err::<usize, _>("no".to_owned()), note), Err("no".to_owned()));
    }
}
