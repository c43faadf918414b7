//! Prometheus' text format, version 0.0.4.

use std::fmt::Write;

/// A page that grows.
#[derive(Debug, Default)]
pub(super) struct Exposition(String);

impl Exposition {
    /// A number that only grows.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: f64) {
        self.counters(name, help, &[(String::new(), value)]);
    }

    /// Writes a counter of several samples, each with its labels, such as `level="disk"`.
    pub(super) fn counters(&mut self, name: &str, help: &str, samples: &[(String, f64)]) {
        self.push(name, help, "counter", samples);
    }

    /// A number that comes and goes.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.gauges(name, help, &[(String::new(), value)]);
    }

    /// Writes a gauge of several samples, each with its labels.
    pub(super) fn gauges(&mut self, name: &str, help: &str, samples: &[(String, f64)]) {
        self.push(name, help, "gauge", samples);
    }

    /// How many fell below each bound; `classes` holds those between a bound and the one before it, and last those
    /// beyond all.
    pub(super) fn histogram(&mut self, name: &str, help: &str, bounds: &[f64], classes: &[u64], sum: f64) {
        self.head(name, help, "histogram");
        let mut count = 0;
        let bounds = bounds.iter().map(ToString::to_string).chain([String::from("+Inf")]);
        for (bound, class) in bounds.zip(classes) {
            count += class;
            self.line(&format!("{name}_bucket"), &format!("le=\"{bound}\""), count as f64);
        }
        self.line(&format!("{name}_sum"), "", sum);
        self.line(&format!("{name}_count"), "", count as f64);
    }

    /// The page.
    pub(super) fn into_text(self) -> String {
        self.0
    }

    fn push(&mut self, name: &str, help: &str, kind: &str, samples: &[(String, f64)]) {
        self.head(name, help, kind);
        for (labels, value) in samples {
            self.line(name, labels, *value);
        }
    }

    // Writing to memory does not fail.
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: f64) {
        let _ = match labels {
            "" => writeln!(self.0, "{name} {value}"),
            _ => writeln!(self.0, "{name}{{{labels}}} {value}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let mut page = Exposition::default();
        page.counter("a_total", "All of a.", 12_345_678_901.0);
        page.gauges("b", "Each b.", &[(String::from("c=\"x\""), 0.25), (String::from("c=\"y\""), 0.0)]);
        page.histogram("d_seconds", "Time of d.", &[0.1, 1.0], &[2, 0, 3], 4.5);
        let expected = "\
# HELP a_total All of a.
# TYPE a_total counter
a_total 12345678901
# HELP b Each b.
# TYPE b gauge
b{c=\"x\"} 0.25
b{c=\"y\"} 0
# HELP d_seconds Time of d.
# TYPE d_seconds histogram
d_seconds_bucket{le=\"0.1\"} 2
d_seconds_bucket{le=\"1\"} 2
d_seconds_bucket{le=\"+Inf\"} 5
d_seconds_sum 4.5
d_seconds_count 5
";
        assert_eq!(page.into_text(), expected);
    }
}
