//! The files of the web console, embedded when the broker was built.

/// A file of the console.
#[derive(Debug)]
pub struct File {
    /// Its path below `/console/`.
    pub path: &'static str,
    pub(super) bytes: &'static [u8],
    /// The bytes compressed, if that makes them fewer.
    pub(super) gzip: Option<&'static [u8]>,
}

/// All files, sorted by path; none if the broker was built without the console.
pub static FILES: &[File] = include!(concat!(env!("OUT_DIR"), "/console.rs"));

impl File {
    /// The file with this path, if there is one.
    pub fn named(path: &str) -> Option<&'static File> {
        let index = FILES.binary_search_by(|file| file.path.cmp(path)).ok()?;
        FILES.get(index)
    }

    /// The content type, by the ending of the name.
    pub(super) fn content_type(&self) -> &'static str {
        let (_, ending) = self.path.rsplit_once('.').unwrap_or_default();
        match ending {
            "html" => "text/html; charset=utf-8",
            "js" | "mjs" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            "json" | "map" => "application/json",
            "webmanifest" => "application/manifest+json",
            "svg" => "image/svg+xml",
            "png" => "image/png",
            "ico" => "image/x-icon",
            "woff2" => "font/woff2",
            "txt" => "text/plain; charset=utf-8",
            _ => "application/octet-stream",
        }
    }
}
