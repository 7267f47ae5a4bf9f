//! The queue alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use melba_types::Oid;

use super::*;

const DATABASE: Oid = Oid(5);

fn listener(queue: &Notifications, pid: i32, channels: &[&str]) -> Arc<Listener> {
    let listener = Listener::new(pid, DATABASE);
    let mut pending = PendingNotifications::default();
    channels.iter().for_each(|channel| pending.listen(&listener, channel).expect("a channel"));
    queue.apply(&mut pending);
    listener
}

fn telling(pid: i32, what: &[(&str, &str)]) -> PendingNotifications {
    let mut pending = PendingNotifications::default();
    what.iter().for_each(|(channel, payload)| pending.notify((pid, DATABASE), channel, payload, u64::MAX).expect("fits"));
    pending
}

fn heard(listener: &Listener) -> Vec<String> {
    let next = || {
        let delivery = listener.take()?;
        let notification = delivery.notification();
        Some(format!("{} {} {}", delivery.pid(), notification.channel, notification.payload))
    };
    std::iter::from_fn(next).collect()
}

fn publish(queue: &Notifications, mut pending: PendingNotifications) {
    let (place, _) = queue.reserve(&mut pending, Duration::ZERO).expect("there is room");
    place.publish(|| panic!("nobody is before it"));
}

#[test]
fn notification_batches_arrive_in_order() {
    let queue = Notifications::new(1 << 20);
    let one = listener(&queue, 1, &["a"]);
    let (first, _) = queue.reserve(&mut telling(2, &[("a", "first")]), Duration::ZERO).expect("there is room");
    let (failing, _) = queue.reserve(&mut telling(3, &[("a", "never")]), Duration::ZERO).expect("there is room");
    let (last, _) = queue.reserve(&mut telling(4, &[("a", "last")]), Duration::ZERO).expect("there is room");
    std::thread::scope(|scope| {
        let (waits, waiting) = std::sync::mpsc::channel();
        scope.spawn(move || last.publish(|| waits.send(()).expect("somebody listens")));
        waiting.recv().expect("it waits for those before it");
        assert!(heard(&one).is_empty());
        drop(failing);
        first.publish(|| panic!("nobody is before it"));
    });
    assert_eq!(heard(&one), ["2 a first", "4 a last"]);
}

#[test]
fn a_session_hears_of_its_channels_and_is_woken_once() {
    let queue = Notifications::new(1 << 20);
    let (one, other) = (listener(&queue, 1, &["a", "b"]), listener(&queue, 2, &["c"]));
    let woken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&woken);
    one.set_wake(Box::new(move || {
        count.fetch_add(1, Ordering::Relaxed);
    }));
    publish(&queue, telling(9, &[("a", "1"), ("c", "2"), ("b", "3"), ("a", "4")]));
    publish(&queue, telling(9, &[("b", "5")]));
    assert_eq!(woken.load(Ordering::Relaxed), 1, "it has not read yet");
    assert_eq!(heard(&one), ["9 a 1", "9 b 3", "9 a 4", "9 b 5"]);
    assert_eq!(heard(&other), ["9 c 2"]);
    publish(&queue, telling(9, &[("a", "6")]));
    assert_eq!(woken.load(Ordering::Relaxed), 2);
    let mut pending = PendingNotifications::default();
    pending.unlisten(&one, None);
    queue.apply(&mut pending);
    assert!(heard(&one).is_empty(), "what is not listened to any more");
    assert_eq!(queue.usage(), 0.0);
}

#[test]
fn equal_notifications_arrive_once_and_rolled_back_ones_never() {
    let mut pending = telling(1, &[("a", ""), ("a", "x"), ("a", "")]);
    let mark = pending.position();
    for (channel, payload) in [("a", "x"), ("b", "y"), ("b", "z")] {
        pending.notify((1, DATABASE), channel, payload, u64::MAX).expect("fits");
    }
    pending.roll_back_to(mark);
    pending.notify((1, DATABASE), "b", "z", u64::MAX).expect("fits");
    let told: Vec<_> = pending.take_notifications().into_iter().map(|n| format!("{} {}", n.channel, n.payload)).collect();
    assert_eq!(told, ["a ", "a x", "b z"]);
}

#[test]
fn a_session_that_does_not_read_holds_a_bounded_queue() {
    let queue = Notifications::new(10_000);
    let one = listener(&queue, 1, &["a"]);
    let payload = "x".repeat(1000);
    let mut told = 0;
    let warned = std::iter::from_fn(|| {
        let (place, warning) = queue.reserve(&mut telling(2, &[("a", &payload)]), Duration::from_secs(told)).ok()?;
        place.publish(|| ());
        told += 1;
        Some(warning.map(|w| w.message().to_owned()))
    });
    let warned: Vec<String> = warned.flatten().collect();
    assert_eq!(warned, ["NOTIFY queue is 53% full"], "at most every five seconds");
    assert!((8..10).contains(&told), "{told}");
    assert_eq!(
        queue.reserve(&mut telling(2, &[("a", &payload)]), Duration::ZERO).err().map(|e| e.sqlstate()),
        Some(melba_types::SqlState::PROGRAM_LIMIT_EXCEEDED)
    );
    assert_eq!(heard(&one).len(), told as usize);
    assert_eq!(queue.usage(), 0.0);
    publish(&queue, telling(2, &[("a", &payload)]));
    queue.forget(&one);
    assert_eq!(queue.usage(), 0.0, "a session that has ended");
}
