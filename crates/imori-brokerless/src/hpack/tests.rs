use super::*;

type Fields = Vec<(String, String)>;

fn decoded(decoder: &mut HeaderDecoder, block: &[u8]) -> Result<Fields> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        fields.push((String::from_utf8_lossy(name).into(), String::from_utf8_lossy(value).into()));
    })?;
    Ok(fields)
}

fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_responses_of_the_standard_are_read() {
    // RFC 7541, C.6: three responses with a table of 256 bytes, from which entries are evicted.
    let mut decoder = HeaderDecoder::new();
    decoder.decode(b"\x3f\xe1\x01", |_, _| {}).unwrap();
    let location = ("location", "https://www.example.com");
    let date = ("date", "Mon, 21 Oct 2013 20:13:21 GMT");
    for (block, expected) in [
        (
            &b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\xd4\x44\xa8\x20\x05\x95\
               \x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\
               \x82\xae\x43\xd3"[..],
            &[(":status", "302"), ("cache-control", "private"), date, location][..],
        ),
        (
            b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
            &[(":status", "307"), ("cache-control", "private"), date, location],
        ),
    ] {
        assert_eq!(decoded(&mut decoder, block).unwrap(), fields(expected));
        assert_eq!(decoder.bytes, 222);
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut decoder = HeaderDecoder::new();
    let long = "x".repeat(300);
    let sent = [(":path", "/a.B/C"), (":authority", "h:1"), ("te", "trailers"), ("x-long", &long)];
    let mut first = Vec::new();
    push_indexed(&mut first, 3);
    for (name, value) in sent {
        push_kept(&mut first, name, value);
    }
    let mut expected = fields(&[(":method", "POST")]);
    expected.extend(fields(&sent));
    assert_eq!(decoded(&mut decoder, &first).unwrap(), expected);
    let mut again = Vec::new();
    push_indexed(&mut again, 3);
    for age in (0..sent.len()).rev() {
        push_indexed(&mut again, kept_index(age));
    }
    assert_eq!(again.len(), 5);
    assert_eq!(decoded(&mut decoder, &again).unwrap(), expected);
}

#[test]
fn the_table_keeps_what_has_room() {
    let mut decoder = HeaderDecoder::new();
    let value = "v".repeat(2_000);
    for (name, kept) in [("a", 1), ("b", 2), ("c", 2)] {
        let mut block = Vec::new();
        push_kept(&mut block, name, &value);
        decoded(&mut decoder, &block).unwrap();
        assert_eq!(decoder.dynamic.len(), kept, "{name}");
    }
    let mut large = Vec::new();
    push_kept(&mut large, "d", &"v".repeat(TABLE_BYTES));
    decoded(&mut decoder, &large).unwrap();
    assert_eq!((decoder.dynamic.len(), decoder.bytes), (0, 0), "what is larger than the table empties it");
    let mut small = Vec::new();
    push_kept(&mut small, "e", "");
    decoded(&mut decoder, &small).unwrap();
    decoded(&mut decoder, b"\x20").unwrap();
    assert_eq!((decoder.dynamic.len(), decoder.bytes), (0, 0), "a table of 0 bytes keeps nothing");
}

#[test]
fn what_is_no_header_block_is_refused() {
    for block in [
        &b"\x80"[..],
        b"\xbe",
        b"\xff",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x40",
        b"\x40\x03a",
        b"\x40\x01a",
        b"\x40\x01a\x81\x00",
        b"\x82\x20",
        b"\x3f\xe2\x1f",
        b"\x00\x7f\xff\xff\x7f",
    ] {
        assert!(decoded(&mut HeaderDecoder::new(), block).is_err(), "{block:x?}");
    }
}

#[test]
fn any_text_comes_back_plain_and_coded() {
    let mut state = 0x1234_5678_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut decoder = HeaderDecoder::new();
    for _ in 0..2_000 {
        let value: Vec<u8> = (0..next() % 300).map(|_| next() as u8).collect();
        let coded = huffman::encode(&value);
        for (flag, text) in [(0, &value), (0x80, &coded)] {
            let mut block = b"\x40\x01n".to_vec();
            push_integer(&mut block, flag, 7, text.len());
            block.extend_from_slice(text);
            let mut seen = Vec::new();
            decoder.decode(&block, |_, value| seen.extend_from_slice(value)).unwrap();
            assert_eq!(seen, value);
        }
    }
}

#[test]
fn garbage_is_refused_and_the_table_stays_in_its_bounds() {
    let mut state = 0x8765_4321_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut decoder = HeaderDecoder::new();
    for _ in 0..50_000 {
        let block: Vec<u8> =
            (0..next() % 40).map(|_| next() as u8 & if next() % 2 == 0 { 0x4f } else { 0xff }).collect();
        let _ = decoder.decode(&block, |_, _| {});
        let bytes: usize =
            decoder.dynamic.iter().map(|(name, value)| name.len() + value.len() + ENTRY_BYTES).sum();
        assert!(bytes == decoder.bytes && bytes <= TABLE_BYTES);
    }
}
