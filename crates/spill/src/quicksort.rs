//! The sort of rows that PostgreSQL users are used to.
//!
//! Rows with equal keys have no order in SQL, but people see one and tests expect it: this is Bentley and McIlroy's quicksort
//! ("Engineering a sort function", 1993) with a check for sorted input, which is what PostgreSQL sorts with, so equal rows come
//! out in the order in which PostgreSQL would return them.

use std::cmp::Ordering;

const INSERTION_MAX: usize = 7;
const NINTHER_MIN: usize = 40;

/// Sorts `v` by `cmp`. Not stable.
pub fn quicksort<T>(v: &mut [T], cmp: &impl Fn(&T, &T) -> Ordering) {
    let mut v = v;
    loop {
        let n = v.len();
        if n < INSERTION_MAX {
            for i in 1..n {
                let mut j = i;
                while j > 0 && cmp(&v[j - 1], &v[j]).is_gt() {
                    v.swap(j, j - 1);
                    j -= 1;
                }
            }
            return;
        }
        if v.windows(2).all(|w| cmp(&w[0], &w[1]).is_le()) {
            return;
        }
        let pivot = choose(v, cmp);
        v.swap(0, pivot);
        // Equal elements gather at both ends: [0, a) and (d, n); less in [a, b), greater in (c, d].
        let (mut a, mut b) = (1, 1);
        let (mut c, mut d) = (n - 1, n - 1);
        loop {
            while b <= c {
                match cmp(&v[b], &v[0]) {
                    Ordering::Greater => break,
                    Ordering::Equal => {
                        v.swap(a, b);
                        a += 1;
                    }
                    Ordering::Less => {}
                }
                b += 1;
            }
            while b <= c {
                match cmp(&v[c], &v[0]) {
                    Ordering::Less => break,
                    Ordering::Equal => {
                        v.swap(c, d);
                        d -= 1;
                    }
                    Ordering::Greater => {}
                }
                c -= 1;
            }
            if b > c {
                break;
            }
            v.swap(b, c);
            b += 1;
            c -= 1;
        }
        let left = a.min(b - a);
        swap_ranges(v, 0, b - left, left);
        let right = (d - c).min(n - 1 - d);
        swap_ranges(v, b, n - right, right);
        let (less, greater) = (b - a, d - c);
        // Sorts the smaller part by recursion, the larger by the next iteration.
        let (low, rest) = v.split_at_mut(less);
        let from = rest.len() - greater;
        let high = &mut rest[from..];
        if less <= greater {
            quicksort(low, cmp);
            v = high;
        } else {
            quicksort(high, cmp);
            v = low;
        }
    }
}

fn swap_ranges<T>(v: &mut [T], a: usize, b: usize, n: usize) {
    for i in 0..n {
        v.swap(a + i, b + i);
    }
}

fn choose<T>(v: &[T], cmp: &impl Fn(&T, &T) -> Ordering) -> usize {
    let n = v.len();
    let (mut l, mut m, mut h) = (0, n / 2, n - 1);
    if n > INSERTION_MAX {
        if n > NINTHER_MIN {
            let d = n / 8;
            l = median(v, l, l + d, l + 2 * d, cmp);
            m = median(v, m - d, m, m + d, cmp);
            h = median(v, h - 2 * d, h - d, h, cmp);
        }
        m = median(v, l, m, h, cmp);
    }
    m
}

fn median<T>(v: &[T], a: usize, b: usize, c: usize, cmp: &impl Fn(&T, &T) -> Ordering) -> usize {
    if cmp(&v[a], &v[b]).is_lt() {
        if cmp(&v[b], &v[c]).is_lt() {
            b
        } else if cmp(&v[a], &v[c]).is_lt() {
            c
        } else {
            a
        }
    } else if cmp(&v[b], &v[c]).is_gt() {
        b
    } else if cmp(&v[a], &v[c]).is_lt() {
        a
    } else {
        c
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_whatever_it_is_given() {
        let mut x = 7u32;
        for n in [0, 1, 2, 6, 7, 8, 39, 41, 500, 3000] {
            for range in [1, 2, 10, 1000, u32::MAX] {
                let mut v: Vec<u32> = (0..n)
                    .map(|_| {
                        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        (x >> 4) % range
                    })
                    .collect();
                let mut expected = v.clone();
                expected.sort_unstable();
                quicksort(&mut v, &u32::cmp);
                assert_eq!(v, expected);
            }
        }
    }
}
