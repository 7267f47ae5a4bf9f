//! encrypt and decrypt: a cipher, a mode and a padding, named as in `aes-cbc/pad:pkcs`.

use aes::cipher::{Array, BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use blowfish::Blowfish;
use melba_types::{DbError, Result, bail, err, limits};

use super::unusable;

const BLOWFISH_KEY_BYTES_MAX: usize = 56;

trait BlockCipher {
    fn block_bytes(&self) -> usize;
    fn encrypt(&self, block: &mut [u8]);
    fn decrypt(&self, block: &mut [u8]);
}

impl<C: BlockCipherEncrypt + BlockCipherDecrypt> BlockCipher for C {
    fn block_bytes(&self) -> usize {
        C::block_size()
    }

    fn encrypt(&self, block: &mut [u8]) {
        let mut array = Array::try_from(&*block).expect("a whole block");
        self.encrypt_block(&mut array);
        block.copy_from_slice(&array);
    }

    fn decrypt(&self, block: &mut [u8]) {
        let mut array = Array::try_from(&*block).expect("a whole block");
        self.decrypt_block(&mut array);
        block.copy_from_slice(&array);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Cbc,
    Cfb,
    Ecb,
}

struct Method {
    cipher: Box<dyn BlockCipher>,
    mode: Mode,
    padded: bool,
}

/// A key is filled up with zeros to a length that the cipher has, or cut off at the longest.
fn aes(key: &[u8]) -> Box<dyn BlockCipher> {
    let mut full = [0; 32];
    let used = key.len().min(full.len());
    full[..used].copy_from_slice(&key[..used]);
    const FITS: &str = "a key of the cipher's length";
    match used {
        0..=16 => Box::new(Aes128::new_from_slice(&full[..16]).expect(FITS)),
        17..=24 => Box::new(Aes192::new_from_slice(&full[..24]).expect(FITS)),
        _ => Box::new(Aes256::new_from_slice(&full).expect(FITS)),
    }
}

/// The cipher repeats its key, so that four times a short one is the same key.
fn blowfish(key: &[u8], function: &str) -> Result<Box<dyn BlockCipher>> {
    let key = if key.is_empty() { &[0][..] } else { key };
    if key.len() > BLOWFISH_KEY_BYTES_MAX {
        return Err(failed(function, "Key was too big"));
    }
    let key = if key.len() < 4 { key.repeat(4) } else { key.to_vec() };
    let cipher: Blowfish = Blowfish::new_from_slice(&key).map_err(|e| failed(function, &e.to_string()))?;
    Ok(Box::new(cipher))
}

fn failed(function: &str, why: &str) -> DbError {
    err!(EXTERNAL_ROUTINE_INVOCATION_EXCEPTION, "{function} error: {why}")
}

fn method(name: &str, key: &[u8], function: &str) -> Result<Method> {
    let lower = name.to_ascii_lowercase();
    let mut parts = lower.split('/');
    let algorithm = parts.next().unwrap_or_default();
    let mut padded = true;
    for option in parts {
        padded = match option.split_once(':') {
            Some(("pad", "pkcs")) => true,
            Some(("pad", "none")) => false,
            Some(("pad", _)) => return Err(unusable(name, "No such cipher algorithm")),
            _ => return Err(unusable(name, "Unknown option")),
        };
    }
    let (cipher, mode) = algorithm.split_once('-').unwrap_or((algorithm, "cbc"));
    let mode = match mode {
        "cbc" => Mode::Cbc,
        "cfb" => Mode::Cfb,
        "ecb" => Mode::Ecb,
        _ => return Err(unusable(name, "No such cipher algorithm")),
    };
    let cipher = match cipher {
        "aes" | "rijndael" => aes(key),
        "bf" | "blowfish" => blowfish(key, function)?,
        "des" | "3des" | "des3" | "cast5" => bail!(FEATURE_NOT_SUPPORTED, "cipher {cipher} is not supported"),
        _ => return Err(unusable(name, "No such cipher algorithm")),
    };
    Ok(Method { cipher, mode, padded })
}

impl Method {
    /// A stream needs no whole blocks.
    fn is_padded(&self) -> bool {
        self.padded && self.mode != Mode::Cfb
    }

    /// The first feedback: as much of the given bytes as a block takes, and zeros.
    fn first(&self, iv: &[u8]) -> Vec<u8> {
        let mut first: Vec<u8> = iv.iter().copied().take(self.cipher.block_bytes()).collect();
        first.resize(self.cipher.block_bytes(), 0);
        first
    }
}

fn xor(data: &mut [u8], with: &[u8]) {
    data.iter_mut().zip(with).for_each(|(d, w)| *d ^= w);
}

/// # Errors
/// 22023 for an unknown method, 39000 when the data is no whole number of blocks and not padded.
pub fn encrypt(data: &[u8], key: &[u8], iv: &[u8], name: &str, function: &str) -> Result<Vec<u8>> {
    let method = method(name, key, function)?;
    let size = method.cipher.block_bytes();
    let mut data = data.to_vec();
    if method.is_padded() {
        let padding = size - data.len() % size;
        data.resize(data.len() + padding, padding as u8);
    }
    if method.mode != Mode::Cfb && !data.len().is_multiple_of(size) {
        return Err(failed(function, "Encryption failed"));
    }
    let mut feedback = method.first(iv);
    for block in data.chunks_mut(size) {
        limits::tick()?;
        match method.mode {
            Mode::Ecb => method.cipher.encrypt(block),
            Mode::Cbc => {
                xor(block, &feedback);
                method.cipher.encrypt(block);
                feedback.copy_from_slice(block);
            }
            Mode::Cfb => {
                method.cipher.encrypt(&mut feedback);
                xor(block, &feedback);
                feedback[..block.len()].copy_from_slice(block);
            }
        }
    }
    Ok(data)
}

/// # Errors
/// 22023 for an unknown method, 39000 when the data is no whole number of blocks or its padding is wrong.
pub fn decrypt(data: &[u8], key: &[u8], iv: &[u8], name: &str, function: &str) -> Result<Vec<u8>> {
    let method = method(name, key, function)?;
    let size = method.cipher.block_bytes();
    let wrong = || failed(function, "Decryption failed");
    let mut data = data.to_vec();
    if method.mode != Mode::Cfb && !data.len().is_multiple_of(size) {
        return Err(wrong());
    }
    let mut feedback = method.first(iv);
    for block in data.chunks_mut(size) {
        limits::tick()?;
        let encrypted = block.to_vec();
        match method.mode {
            Mode::Ecb => method.cipher.decrypt(block),
            Mode::Cbc => {
                method.cipher.decrypt(block);
                xor(block, &feedback);
            }
            Mode::Cfb => {
                method.cipher.encrypt(&mut feedback);
                xor(block, &feedback);
            }
        }
        feedback[..encrypted.len()].copy_from_slice(&encrypted);
    }
    if method.is_padded() {
        let padding = usize::from(*data.last().ok_or_else(wrong)?);
        let kept = data.len().checked_sub(padding).filter(|_| (1..=size).contains(&padding)).ok_or_else(wrong)?;
        if data[kept..].iter().any(|b| usize::from(*b) != padding) {
            return Err(wrong());
        }
        data.truncate(kept);
    }
    Ok(data)
}
