//! Prometheus text format, version 0.0.4.

use std::fmt::Write;
use std::time::Duration;

/// The content type of the format.
pub(crate) const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page under construction.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// A label name and its value.
pub(super) type Label<'a> = (&'a str, &'a str);

impl Exposition {
    /// Writes a counter without labels.
    pub fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "counter");
        self.sample(name, &[], value);
    }

    /// Writes a gauge without labels.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, &[], value);
    }

    /// Writes a family with one sample per value of a label.
    pub fn each<T: AsRef<str>>(
        &mut self,
        kind: &str,
        (name, help): (&str, &str),
        label: &str,
        samples: impl IntoIterator<Item = (T, f64)>,
    ) {
        self.head(name, help, kind);
        for (of, value) in samples {
            self.sample(name, &[(label, of.as_ref())], value);
        }
    }

    /// Writes a histogram in seconds. `classes` has the count of each bucket, with a last bucket beyond all bounds.
    pub fn histogram(
        &mut self,
        (name, help): (&str, &str),
        bounds_us: &[u64],
        classes: &[u64],
        sum: Duration,
    ) {
        self.head(name, help, "histogram");
        let mut count = 0;
        let bounds = bounds_us.iter().map(|micros| (*micros as f64 / 1e6).to_string());
        for (bound, class) in bounds.chain([String::from("+Inf")]).zip(classes) {
            count += class;
            self.sample(&format!("{name}_bucket"), &[("le", &bound)], count as f64);
        }
        self.sample(&format!("{name}_sum"), &[], sum.as_secs_f64());
        self.sample(&format!("{name}_count"), &[], count as f64);
    }

    /// Starts a family; its samples follow.
    pub(super) fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// Writes a sample of the current family.
    pub(super) fn sample(&mut self, name: &str, labels: &[Label<'_>], value: f64) {
        self.0.push_str(name);
        for (index, (label, of)) in labels.iter().enumerate() {
            self.0.push(if index == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            push_escaped(&mut self.0, of);
            self.0.push('"');
        }
        if !labels.is_empty() {
            self.0.push('}');
        }
        let _ = writeln!(self.0, " {value}");
    }

    /// Returns the page.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Writes a label's value, escaped so that names chosen by clients cannot inject lines or labels.
fn push_escaped(page: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => page.push_str("\\\\"),
            '"' => page.push_str("\\\""),
            '\n' => page.push_str("\\n"),
            other => page.push(other),
        }
    }
}
