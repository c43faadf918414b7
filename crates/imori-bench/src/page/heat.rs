//! A heat map of response times: time to the right, response time upwards, darker for more
//! operations. Below it stalls have a lane for each verdict, so the lane shows the cause.

use crate::page::axis::{Axis, Scale, Span, Tick, Unit};
use crate::page::columns::Columns;
use crate::page::frame::{Frame, text_width};
use crate::page::markup::{Markup, px};
use crate::page::quantity::grouped;
use crate::page::verdict::{VERDICTS, letter, name};
use crate::record::series::{HEAT_BOUNDS_US, Period, Stall};

/// Shades, from few to many.
const SHADES: usize = 7;
/// Height of a lane of the strip.
const LANE: f64 = 18.0;
/// The most marks drawn for a period.
const MARKS_MAX: usize = 500;

/// The data of a heat map.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heat<'a> {
    /// The run, cut into columns.
    pub(crate) columns: &'a Columns,
    /// End of the run, in seconds since measuring began.
    pub(crate) end: f64,
    /// The unit of an operation.
    pub(crate) unit: &'a str,
    /// The stalls.
    pub(crate) stalls: &'a [Stall],
    /// The period at which stalls recur.
    pub(crate) period: Option<&'a Period>,
}

impl Heat<'_> {
    /// The drawing, `width` units wide.
    pub(crate) fn svg(&self, width: f64) -> Markup {
        let time = Axis::new("time", Scale::Linear, Unit::Elapsed);
        let across = Span::across(&time, [0.0, self.end].into_iter());
        let latency = Axis::new("response time", Scale::Log, Unit::Micros);
        let classes = self.classes();
        let ends = classes.iter().flat_map(|class| [lower(*class), upper(*class)]);
        let up = Span::up(&latency, ends);
        let lanes = self.lanes();
        let strip = if lanes.is_empty() { 0.0 } else { lanes.len() as f64 * LANE + 10.0 };
        let labels: Vec<Tick> = up.ticks(7);
        let names = lanes.iter().map(|lane| text_width(lane)).fold(0.0, f64::max);
        let left = labels.iter().map(|tick| text_width(&tick.label)).fold(names, f64::max) + 18.0;
        let height = if width < 450.0 { 230.0 } else { 280.0 };
        let frame = Frame::with_left(width, height, 0.0, 1, left).with_strip(strip);
        let mut svg = Markup::new();
        frame.open(&mut svg, "heat map of response times", false);
        frame.grid(&mut svg, &[], &labels, "", "response time, each column in all its shades");
        self.draw_shades(&mut svg, &frame, &across, &up);
        self.draw_legend(&mut svg, &frame);
        if !lanes.is_empty() {
            self.draw_strip(&mut svg, &frame, &across, &lanes);
        }
        frame.foot(&mut svg, &across.ticks(frame.labels_across()), "time", frame.bottom() + strip);
        frame.cursor(&mut svg);
        svg.close("svg");
        svg
    }

    /// The lanes of the strip: verdicts that occur, and the period if there is one.
    fn lanes(&self) -> Vec<String> {
        let mut lanes: Vec<String> = VERDICTS
            .into_iter()
            .filter(|verdict| self.stalls.iter().any(|stall| stall.verdict == *verdict))
            .map(|verdict| format!("{} {}", letter(verdict), name(verdict)))
            .collect();
        if self.period.is_some() {
            lanes.push("period".to_owned());
        }
        lanes
    }

    /// The classes that hold anything.
    fn classes(&self) -> Vec<usize> {
        let mut classes: Vec<usize> = self
            .columns
            .list
            .iter()
            .flat_map(|column| column.counts.iter().enumerate())
            .filter(|(class, count)| **count > 0 && *class <= HEAT_BOUNDS_US.len())
            .map(|(class, _)| class)
            .collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    fn most(&self) -> f64 {
        let counts = self.columns.list.iter().flat_map(|column| &column.counts);
        f64::from(counts.copied().max().unwrap_or(0))
    }

    /// The least count of each shade: one, then equal ratios.
    fn bounds(&self) -> Vec<f64> {
        let most = self.most().max(1.0);
        let mut bounds: Vec<f64> =
            (0..SHADES).map(|shade| most.powf(shade as f64 / SHADES as f64).floor().max(1.0)).collect();
        bounds.dedup();
        bounds
    }

    fn draw_shades(&self, svg: &mut Markup, frame: &Frame, across: &Span<'_>, up: &Span<'_>) {
        let bounds = self.bounds();
        // One path a shade: a run of an hour would be ten thousand elements otherwise.
        let mut paths = vec![String::new(); bounds.len()];
        for column in &self.columns.list {
            let (Some(from), Some(to)) =
                (across.place(column.start), across.place(column.start + self.columns.width))
            else {
                continue;
            };
            let (left, right) = (frame.x(from), frame.x(to));
            for (class, count) in column.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                if class > HEAT_BOUNDS_US.len() {
                    continue;
                }
                let shade = bounds.iter().rposition(|bound| f64::from(*count) >= *bound).unwrap_or(0);
                let (Some(low), Some(high)) = (up.place(lower(class)), up.place(upper(class))) else {
                    continue;
                };
                let (top, height) = (frame.y(high), frame.y(low) - frame.y(high));
                if let Some(path) = paths.get_mut(shade) {
                    let wide = px(right - left + 0.3);
                    path.push_str(&format!("M{} {}h{wide}v{}h-{wide}z", px(left), px(top), px(height)));
                }
            }
        }
        let shift = SHADES - bounds.len();
        for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
            svg.empty("path", &[("class", &format!("h{}", shade + 1 + shift)), ("d", path)]);
        }
    }

    fn draw_legend(&self, svg: &mut Markup, frame: &Frame) {
        let bounds = self.bounds();
        let shift = SHADES - bounds.len();
        let title = format!("{} in {}:", self.unit, self.columns.width_in_words());
        svg.element("text", &[("class", &"axis"), ("x", &"0"), ("y", &"14")], &title);
        let mut x = 10.0 + text_width(&title);
        for (shade, bound) in bounds.iter().enumerate() {
            let label = format!("≥ {}", grouped(*bound));
            // In a narrow drawing only the ends and the middle are named.
            let is_named = frame.width > 600.0 || shade == 0 || shade + 1 == bounds.len();
            svg.empty(
                "rect",
                &[
                    ("class", &format!("h{}", shade + 1 + shift)),
                    ("x", &px(x)),
                    ("y", &"4"),
                    ("width", &"14"),
                    ("height", &"12"),
                ],
            );
            x += 16.0;
            if is_named {
                svg.element("text", &[("class", &"small"), ("x", &px(x + 2.0)), ("y", &"14")], &label);
                x += text_width(&label) + 12.0;
            }
        }
    }

    fn draw_strip(&self, svg: &mut Markup, frame: &Frame, across: &Span<'_>, lanes: &[String]) {
        let top = frame.bottom() + 8.0;
        for (at, lane) in lanes.iter().enumerate() {
            let y = top + at as f64 * LANE;
            svg.element(
                "text",
                &[("class", &"end"), ("x", &px(frame.left() - 8.0)), ("y", &px(y + 12.0))],
                lane,
            );
            svg.empty(
                "rect",
                &[
                    ("class", &"lane"),
                    ("x", &px(frame.left())),
                    ("y", &px(y + 1.0)),
                    ("width", &px(frame.inner_width())),
                    ("height", &px(LANE - 2.0)),
                ],
            );
        }
        for stall in self.stalls {
            let lane = format!("{} {}", letter(stall.verdict), name(stall.verdict));
            let Some(at) = lanes.iter().position(|other| *other == lane) else { continue };
            let (Some(from), Some(to)) =
                (across.place(stall.start_s), across.place(stall.start_s + stall.length_s.max(0.0)))
            else {
                continue;
            };
            let wide = (frame.x(to) - frame.x(from)).max(3.0);
            let (left, y) = (frame.x(from).min(frame.x(1.0) - wide), top + at as f64 * LANE);
            let look = VERDICTS.iter().position(|verdict| *verdict == stall.verdict).unwrap_or(0);
            svg.open(
                "rect",
                &[
                    ("class", &format!("v{look}")),
                    ("x", &px(left)),
                    ("y", &px(y + 1.0)),
                    ("width", &px(wide)),
                    ("height", &px(LANE - 2.0)),
                ],
            );
            svg.element(
                "title",
                &[],
                &format!("{} at {:.1} s for {:.3} s", name(stall.verdict), stall.start_s, stall.length_s),
            );
            svg.close("rect");
        }
        if let Some(period) = self.period {
            self.draw_period(svg, frame, across, period, top + lanes.len() as f64 * LANE);
        }
    }

    /// A triangle wherever the period expects a stall.
    fn draw_period(&self, svg: &mut Markup, frame: &Frame, across: &Span<'_>, period: &Period, foot: f64) {
        let mut d = String::new();
        if period.period_s <= 0.0 {
            return;
        }
        for cycle in 0..MARKS_MAX {
            let at = period.phase_s + cycle as f64 * period.period_s;
            if at > self.end {
                break;
            }
            if let Some(place) = across.place(at) {
                d.push_str(&format!("M{} {}l4 8h-8z", px(frame.x(place)), px(foot - LANE + 5.0)));
            }
        }
        svg.empty("path", &[("class", &"due"), ("d", &d)]);
    }
}

/// The lower end of a class; the first is as long as the others.
fn lower(class: usize) -> f64 {
    match class.checked_sub(1) {
        Some(before) => HEAT_BOUNDS_US.get(before).copied().unwrap_or(1e7),
        None => 0.63,
    }
}

/// The upper end of a class; the last is as long as the others.
fn upper(class: usize) -> f64 {
    HEAT_BOUNDS_US.get(class).copied().unwrap_or(1.6e7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::columns::Column;
    use crate::page::well_formed::check;
    use crate::record::series::{Second, Verdict};

    fn columns(rows: &[Second]) -> Columns {
        let list = rows.iter().map(|row| Column { start: f64::from(row.t), counts: row.heat.clone() });
        Columns { width: 1.0, list: list.collect() }
    }

    fn stall(start_s: f64, length_s: f64, verdict: Verdict) -> Stall {
        Stall {
            start_s,
            length_s,
            operations: 1,
            worst_us: 1e6,
            delay_s: 1.0,
            verdict,
            evidence: String::new(),
        }
    }

    #[test]
    fn each_verdict_has_a_lane_with_its_letter() {
        let rows: Vec<Second> =
            (0..30).map(|t| Second { t, heat: vec![t % 3; 37], ..Second::default() }).collect();
        let columns = columns(&rows);
        let stalls = [stall(1.0, 0.5, Verdict::Disk), stall(29.9, 5.0, Verdict::Broker)];
        let period = Period { period_s: 3.0, phase_s: 1.0, confidence: 0.9, cycles: 9, suspect: None };
        let heat =
            Heat { columns: &columns, end: 30.0, unit: "calls", stalls: &stalls, period: Some(&period) };
        let svg = heat.svg(1_000.0).into_text();
        check(&svg);
        for lane in ["B broker", "D disk", ">period<"] {
            assert!(svg.contains(lane), "{lane}");
        }
        assert!(!svg.contains("N network"));
    }

    #[test]
    fn odd_numbers_are_drawn_without_harm() {
        let mut rows = vec![Second { heat: vec![u32::MAX; 90], ..Second::default() }, Second::default()];
        rows[1].t = u32::MAX;
        let columns = columns(&rows);
        let stalls = [stall(-1e300, 1e300, Verdict::Unknown), stall(1e300, -1.0, Verdict::Client)];
        for period_s in [0.0, -1.0, 1e-300] {
            let period = Period { period_s, phase_s: -1e9, confidence: 0.0, cycles: 0, suspect: None };
            let heat =
                Heat { columns: &columns, end: f64::MAX, unit: "", stalls: &stalls, period: Some(&period) };
            check(&heat.svg(300.0).into_text());
        }
        let empty = Columns::default();
        check(
            &Heat { columns: &empty, end: 1.0, unit: "", stalls: &[], period: None }.svg(300.0).into_text(),
        );
    }
}
