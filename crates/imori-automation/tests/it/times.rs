//! Texts of moments.

use imori_automation::times::Timestamp;

#[test]
fn times_are_read_as_stackstorm_reads_them() {
    // The left column through `st2common.util.isotime`.
    let rows = [
        ("2014-10-30T05:08:30.123456Z", "2014-10-30T05:08:30.123456Z"),
        ("2014-10-30 05:08:30.123+00:00", "2014-10-30T05:08:30.123000Z"),
        ("2014-10-30T05:08:30+00", "2014-10-30T05:08:30.000000Z"),
        ("2014-10-30T05:08:30+0000", "2014-10-30T05:08:30.000000Z"),
        ("2014-10-30T05:08:30", "2014-10-30T05:08:30.000000Z"),
        ("2014-10-30T05:08:30.5-07:00", "2014-10-30T12:08:30.500000Z"),
        ("20141030T050830Z", "2014-10-30T05:08:30.000000Z"),
        ("2014-10-30", "2014-10-30T00:00:00.000000Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"),
    ];
    for (text, shown) in rows {
        assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), shown, "{text}");
    }
}

#[test]
fn other_texts_are_no_times() {
    let long = "2".repeat(100);
    let rows =
        ["", "now", "2014-02-30T00:00:00Z", "05:08", "2014-10-30T25:00:00Z", "0000-01-01", "-000001-01-01"];
    let rows = [&rows[..], &["9999-12-31T23:59:59Z", "2014-10-30T05:08:30Z[Europe/Berlin]", &long]].concat();
    for text in rows {
        let error = text.parse::<Timestamp>().unwrap_err().to_string();
        assert!(error.contains("time"), "{text}: {error}");
    }
}

#[test]
fn python_shows_no_fraction_where_it_is_zero() {
    assert_eq!(Timestamp::from_micros(1_500_000).to_python(), "1970-01-01 00:00:01.500000+00:00");
    assert_eq!(Timestamp::from_micros(-1).to_python(), "1969-12-31 23:59:59.999999+00:00");
    assert_eq!(Timestamp::from_seconds(3_600).to_python(), "1970-01-01 01:00:00+00:00");
}

#[test]
fn moments_out_of_range_are_not_made() {
    assert_eq!(Timestamp::from_seconds(i64::MAX), Timestamp::MAX);
    assert_eq!(Timestamp::from_micros(i64::MIN), Timestamp::MIN);
    assert_eq!(Timestamp::MAX.plus_micros(1), None);
    assert_eq!(Timestamp::MIN.plus_micros(i64::MIN), None);
    assert_eq!(Timestamp::MAX.to_string(), "9999-12-30T21:59:59.999999Z");
    assert_eq!(Timestamp::MIN.to_string(), "0001-01-01T00:00:00.000000Z");
}

#[test]
fn json_has_the_text() {
    let moment = Timestamp::from_micros(1);
    let json = serde_json::to_string(&moment).unwrap();
    assert_eq!(json, "\"1970-01-01T00:00:00.000001Z\"");
    assert_eq!(serde_json::from_str::<Timestamp>(&json).unwrap(), moment);
}

proptest::proptest! {
    #[test]
    fn text_of_any_moment_is_read_again(micros in Timestamp::MIN.micros()..=Timestamp::MAX.micros(), is_whole: bool) {
        let moment = Timestamp::from_micros(if is_whole { micros - micros % 1_000_000 } else { micros });
        let text = moment.to_string();
        assert_eq!(text.len(), "2014-10-30T05:08:30.123456Z".len(), "{text}");
        assert_eq!(text.parse(), Ok(moment));
        let python = text.replace('T', " ").replace(".000000", "").replace('Z', "+00:00");
        assert_eq!(moment.to_python(), python);
    }
}
