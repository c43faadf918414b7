//! Encryption of secret values: AES-256-GCM with a key in a file of the data folder. Values that StackStorm encrypted
//! are read with its key, if that lies beside ours.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

use crate::keyczar::{KeyczarKey, is_envelope};

/// The name of a file with a key of StackStorm, which calls it so too.
const STACKSTORM_KEY: &str = "datastore_key.json";

/// Length of the key in bytes.
const KEY_BYTES: usize = 32;

/// The cipher of secret values; its key is read, or made, when it is first needed.
pub struct Cipher {
    path: PathBuf,
    making: Mutex<()>,
    key: OnceLock<LessSafeKey>,
    /// Another key, which derives from the first.
    tags: OnceLock<hmac::Key>,
    stackstorm: OnceLock<KeyczarKey>,
}

impl Cipher {
    /// The cipher whose key is in this file.
    pub fn at(path: &Path) -> Cipher {
        Cipher {
            path: path.to_owned(),
            making: Mutex::default(),
            key: OnceLock::new(),
            tags: OnceLock::new(),
            stackstorm: OnceLock::new(),
        }
    }

    /// Encrypts a text: nonce and ciphertext in base64.
    ///
    /// # Errors
    /// The key cannot be read or made.
    pub fn encrypt(&self, text: &str) -> Result<String, String> {
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|error| error.to_string())?;
        let mut sealed = text.as_bytes().to_vec();
        let key = self.key()?;
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut sealed)
            .map_err(|_| String::from("the value cannot be encrypted"))?;
        Ok(STANDARD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts what [`Cipher::encrypt`] gave, or StackStorm.
    ///
    /// # Errors
    /// The key cannot be read, or did not encrypt this value.
    pub fn decrypt(&self, text: &str) -> Result<String, String> {
        if is_envelope(text) {
            let path = self.stackstorm_path();
            let wrong = || format!("the value was not encrypted with the key in `{}`", path.display());
            return self.stackstorm_key()?.decrypt(text).ok_or_else(wrong);
        }
        let wrong = || format!("the value was not encrypted with the key in `{}`", self.path.display());
        let bytes = STANDARD.decode(text).map_err(|_| wrong())?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or_else(wrong)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| wrong())?;
        let mut sealed = sealed.to_vec();
        let opened = self.key()?.open_in_place(nonce, Aad::empty(), &mut sealed).map_err(|_| wrong())?;
        String::from_utf8(opened.to_vec()).map_err(|_| wrong())
    }

    /// A tag of a text that proves to [`Cipher::verify`] that it was made here.
    ///
    /// # Errors
    /// The key cannot be read or made.
    pub fn tag(&self, text: &str) -> Result<Vec<u8>, String> {
        Ok(hmac::sign(self.tag_key()?, text.as_bytes()).as_ref().to_vec())
    }

    /// Checks the tag of a text, in a time that tells nothing of the right one.
    ///
    /// # Errors
    /// The tag is wrong, or the key cannot be read or made.
    pub fn verify(&self, text: &str, tag: &[u8]) -> Result<(), String> {
        let verified = hmac::verify(self.tag_key()?, text.as_bytes(), tag);
        verified.map_err(|_| String::from("the tag was not made here"))
    }

    fn tag_key(&self) -> Result<&hmac::Key, String> {
        if let Some(key) = self.tags.get() {
            return Ok(key);
        }
        let secret = hmac::Key::new(hmac::HMAC_SHA256, &self.key_bytes()?);
        let derived = hmac::sign(&secret, b"tags");
        Ok(self.tags.get_or_init(|| hmac::Key::new(hmac::HMAC_SHA256, derived.as_ref())))
    }

    /// Where a key of StackStorm is looked for.
    fn stackstorm_path(&self) -> PathBuf {
        self.path.with_file_name(STACKSTORM_KEY)
    }

    fn stackstorm_key(&self) -> Result<&KeyczarKey, String> {
        if let Some(key) = self.stackstorm.get() {
            return Ok(key);
        }
        let path = self.stackstorm_path();
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => {
                return Err(format!(
                    "the value was encrypted by StackStorm; copy its `{STACKSTORM_KEY}` to `{}`",
                    path.display()
                ));
            }
            Err(other) => return Err(format!("the key of StackStorm in `{}`: {other}", path.display())),
        };
        let key = KeyczarKey::read(&bytes)
            .map_err(|reason| format!("the key of StackStorm in `{}`: {reason}", path.display()))?;
        Ok(self.stackstorm.get_or_init(|| key))
    }

    fn key(&self) -> Result<&LessSafeKey, String> {
        if let Some(key) = self.key.get() {
            return Ok(key);
        }
        let bytes = self.key_bytes()?;
        let key = UnboundKey::new(&AES_256_GCM, &bytes).map_err(|_| {
            format!("the key of the datastore in `{}` has not {KEY_BYTES} bytes; a key of StackStorm is called `{STACKSTORM_KEY}`", self.path.display())
        })?;
        Ok(self.key.get_or_init(|| LessSafeKey::new(key)))
    }

    /// The key in the file, which is made if it is missing.
    fn key_bytes(&self) -> Result<Vec<u8>, String> {
        let error =
            |error: io::Error| format!("the key of the datastore in `{}`: {error}", self.path.display());
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        match fs::read(&self.path) {
            Ok(bytes) => Ok(bytes),
            Err(missing) if missing.kind() == io::ErrorKind::NotFound => self.make_key().map_err(error),
            Err(other) => Err(error(other)),
        }
    }

    fn make_key(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; KEY_BYTES];
        getrandom::fill(&mut bytes).map_err(io::Error::other)?;
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        // The file is whole or not there, whenever the broker dies.
        let temporary = self.path.with_extension("key.new");
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&temporary)?;
        file.write_all(&bytes)?;
        // What is encrypted with it is lost without it.
        file.sync_all()?;
        fs::rename(&temporary, &self.path)?;
        Ok(bytes)
    }
}
