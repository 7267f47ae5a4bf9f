//! A persistent map from `u32` to values: a snapshot shares everything with the one before it except the changed paths.
//!
//! A trie over the key's bits, most significant first, five a level, with a leaf as soon as a key is alone; so iteration
//! is in key order, and a map of n random keys is log32(n) deep. Nodes that no other snapshot holds are changed in place.

use std::sync::Arc;

const BITS: u32 = 5;

/// See the module's description. Cloning is O(1).
#[derive(Debug)]
pub struct RadixMap<V> {
    root: Option<Arc<Node<V>>>,
    len: usize,
}

#[derive(Clone, Debug)]
enum Node<V> {
    Leaf(u32, V),
    /// A bit for each of the 32 children that exists; the children are in key order.
    Branch(u32, Vec<Arc<Node<V>>>),
}

impl<V> Clone for RadixMap<V> {
    fn clone(&self) -> Self {
        RadixMap { root: self.root.clone(), len: self.len }
    }
}

impl<V> Default for RadixMap<V> {
    fn default() -> Self {
        RadixMap { root: None, len: 0 }
    }
}

/// The child of a node at `depth` that `key` belongs to. The first level has the two bits that are left over.
fn slot(key: u32, depth: u32) -> u32 {
    if depth == 0 { key >> 30 } else { key >> (30 - depth * BITS) & 31 }
}

fn position(bitmap: u32, slot: u32) -> usize {
    (bitmap & ((1 << slot) - 1)).count_ones() as usize
}

impl<V> RadixMap<V> {
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn get(&self, key: u32) -> Option<&V> {
        let mut node = self.root.as_ref()?;
        let mut depth = 0;
        loop {
            match &**node {
                Node::Leaf(k, value) => return (*k == key).then_some(value),
                Node::Branch(bitmap, children) => {
                    let slot = slot(key, depth);
                    if bitmap >> slot & 1 == 0 {
                        return None;
                    }
                    node = &children[position(*bitmap, slot)];
                    depth += 1;
                }
            }
        }
    }

    /// All entries in key order.
    pub fn iter(&self) -> Iter<'_, V> {
        Iter { stack: self.root.iter().collect() }
    }
}

impl<V: Clone> RadixMap<V> {
    /// Puts a value in place of the key's old one.
    pub fn insert(&mut self, key: u32, value: V) {
        let new = value.clone();
        *self.entry(key, || new) = value;
    }

    /// The key's value to change, made by `default` when it has none.
    pub fn entry(&mut self, key: u32, default: impl FnOnce() -> V) -> &mut V {
        if self.get(key).is_none() {
            self.len += 1;
            match &mut self.root {
                None => self.root = Some(Arc::new(Node::Leaf(key, default()))),
                Some(root) => add(root, key, default(), 0),
            }
        }
        find_mut(self.root.as_mut().expect("the key was just put"), key)
    }

    pub fn remove(&mut self, key: u32) {
        if self.get(key).is_none() {
            return;
        }
        self.len -= 1;
        if self.len == 0 {
            self.root = None;
        } else if let Some(root) = &mut self.root {
            take(root, key, 0);
        }
    }
}

fn add<V: Clone>(node: &mut Arc<Node<V>>, key: u32, value: V, depth: u32) {
    let slot = match &**node {
        // The key is not in the map, so a leaf on its path is another key's: push that one down a level.
        Node::Leaf(other, _) => {
            let bitmap = 1 << self::slot(*other, depth);
            let leaf = node.clone();
            *node = Arc::new(Node::Branch(bitmap, vec![leaf]));
            self::slot(key, depth)
        }
        Node::Branch(..) => self::slot(key, depth),
    };
    let Node::Branch(bitmap, children) = Arc::make_mut(node) else { return };
    let at = position(*bitmap, slot);
    if *bitmap >> slot & 1 != 0 {
        add(&mut children[at], key, value, depth + 1);
    } else {
        *bitmap |= 1 << slot;
        children.insert(at, Arc::new(Node::Leaf(key, value)));
    }
}

fn find_mut<V: Clone>(mut node: &mut Arc<Node<V>>, key: u32) -> &mut V {
    let mut depth = 0;
    loop {
        match Arc::make_mut(node) {
            Node::Leaf(_, value) => return value,
            Node::Branch(bitmap, children) => {
                node = &mut children[position(*bitmap, slot(key, depth))];
                depth += 1;
            }
        }
    }
}

/// Removes an existing key below a node that holds another one too.
fn take<V: Clone>(node: &mut Arc<Node<V>>, key: u32, depth: u32) {
    let Node::Branch(bitmap, children) = Arc::make_mut(node) else { return };
    let slot = slot(key, depth);
    let at = position(*bitmap, slot);
    if matches!(&*children[at], Node::Leaf(..)) {
        children.remove(at);
        *bitmap &= !(1 << slot);
    } else {
        take(&mut children[at], key, depth + 1);
    }
    // Keep the trie canonical: a branch with one leaf is that leaf.
    if let [only] = &children[..]
        && matches!(&**only, Node::Leaf(..))
    {
        let only = only.clone();
        *node = only;
    }
}

pub struct Iter<'a, V> {
    stack: Vec<&'a Arc<Node<V>>>,
}

impl<'a, V> Iterator for Iter<'a, V> {
    type Item = (u32, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match &**self.stack.pop()? {
                Node::Leaf(key, value) => return Some((*key, value)),
                Node::Branch(_, children) => self.stack.extend(children.iter().rev()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Random puts and removes against a model, with old snapshots kept to check that they do not change.
    #[test]
    fn behaves_as_an_ordered_map_and_keeps_snapshots() {
        let mut map = RadixMap::default();
        let mut model = BTreeMap::new();
        let mut old = Vec::new();
        let mut x = 1u32;
        for step in 0..20_000u32 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let key = if x & 1 == 0 { 16_384 + (x >> 8) % 700 } else { (x >> 3) % 5 * 0x3fff_ffff };
            if x >> 4 & 3 == 0 {
                map.remove(key);
                model.remove(&key);
            } else {
                map.insert(key, step);
                model.insert(key, step);
            }
            assert_eq!(map.get(key), model.get(&key));
            if step % 4000 == 0 {
                old.push((map.clone(), model.clone()));
            }
        }
        old.push((map, model));
        for (map, model) in old {
            assert!(map.iter().eq(model.iter().map(|(k, v)| (*k, v))));
        }
    }
}
