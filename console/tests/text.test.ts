import assert from "node:assert/strict";
import { test } from "node:test";
import { fillPath, parseJson } from "../src/api/client.ts";
import { Format, visibleName, visibleText } from "../src/format.ts";
import { parseHeaders } from "../src/headers.ts";
import { asText, bodyBytes, hexDump, indentJson } from "../src/payload.ts";
import { LANGUAGES, snippetOf } from "../src/snippets.ts";
import { en } from "../src/words/en.ts";
import { ja } from "../src/words/ja.ts";

const format = new Format("en-GB", "UTC");

test("numbers, sizes and durations as text", () => {
  const rows: readonly [string, string][] = [
    [format.count(1_234_567), "1,234,567"],
    [format.count(null), "–"],
    [format.short(999), "999"],
    [format.short(12_345), "12.3K"],
    [format.rate(0), "0"],
    [format.rate(0.25), "0.3"],
    [format.rate(1_234.5), "1,235"],
    [format.bytes(0), "0 B"],
    [format.bytes(1_023), "1,023 B"],
    [format.bytes(1_536), "1.5 KiB"],
    [format.bytes(3 * 1_024 ** 5), "3 PiB"],
    [format.duration(12), "12 ms"],
    [format.duration(1_500), "1.5 s"],
    [format.duration(61_000), "1 min 1 s"],
    [format.duration(7_200_000), "2 h"],
    [format.duration(90_000_000), "1 d 1 h"],
    [format.latency(999), "999 µs"],
    [format.latency(1_500), "1.5 ms"],
    [format.latency(2_000_000), "2 s"],
    [format.clock(0), "00:00:00"],
    [format.ago(0, 120_000), "2 min ago"],
    [format.ago(120_000, 0), "0 sec ago"],
  ];
  for (const [text, expected] of rows) assert.equal(text, expected);
});

test("characters that turn or hide text are shown as escapes", () => {
  assert.equal(visibleText("a\u202egpj.exe\nb"), "a\\u202egpj.exe\nb");
  assert.equal(visibleName("a\u0000b\tc\nd"), "a\\u0000b\\tc\\nd");
  assert.equal(visibleName("שלום キュー"), "שלום キュー");
});

test("JSON is indented and its numbers and doubled keys stay as they are", () => {
  assert.equal(indentJson('{"id":9007199254740993,"id":1.0,"a":[],"s":"{,:}\\""}'), '{\n  "id": 9007199254740993,\n  "id": 1.0,\n  "a": [],\n  "s": "{,:}\\""\n}');
  assert.equal(indentJson("[1,[2]]"), "[\n  1,\n  [\n    2\n  ]\n]");
  assert.equal(indentJson("{nothing}"), null);
});

test("integers that JavaScript would round keep their digits", () => {
  const value = parseJson('{"small":7,"large":9007199254740993}') as { small: unknown; large: unknown };
  assert.equal(value.small, 7);
  // Engines without the source of a value round it; the others keep it as text.
  assert.ok(value.large === "9007199254740993" || value.large === 9007199254740992);
});

test("a body that is cut within a character is still text", () => {
  const bytes = new TextEncoder().encode("aあ").subarray(0, 3);
  assert.equal(asText(bytes, true), "a");
  assert.equal(asText(bytes, false), null);
  assert.deepEqual([...bodyBytes("AP8=", "base64")], [0, 255]);
  assert.equal(asText(bodyBytes("AP8=", "base64"), false), null);
});

test("a dump has offset, bytes and characters, and says where it is cut", () => {
  assert.equal(hexDump(new TextEncoder().encode("newt\u0000")).text, `000000  6e 65 77 74 00${" ".repeat(33)}  newt.`);
  assert.equal(hexDump(new Uint8Array(5_000)).isCut, true);
});

test("headers are one a line", () => {
  assert.deepEqual(parseHeaders("a: 1\n\nb:x:y\n"), { kind: "ready", headers: { a: "1", b: "x:y" } });
  assert.equal(JSON.stringify(parseHeaders("__proto__: x")), '{"kind":"ready","headers":{"__proto__":"x"}}');
  assert.deepEqual(parseHeaders("no colon"), { kind: "wrong", line: "no colon" });
});

test("names stay one step of a path", () => {
  assert.equal(fillPath("/v1/queues/{vhost}/{name}", { vhost: "/", name: "a/../b?c#d" }), "/v1/queues/%2F/a%2F..%2Fb%3Fc%23d");
  assert.throws(() => fillPath("/v1/queues/{vhost}/{name}", { vhost: "/", name: ".." }), /command line/);
});

test("programs have the addresses of the broker", () => {
  const listeners = [
    { name: "amqp", address: "0.0.0.0:5999", tls: false },
    { name: "stomp", address: "[::]:61999", tls: false },
  ];
  for (const { id } of LANGUAGES) {
    const snippet = snippetOf(id, { host: "broker.example", origin: "http://broker.example:15672", listeners });
    assert.match(snippet.program ?? "", /broker\.example/, id);
  }
  assert.match(snippetOf("ruby", { host: "h", origin: "", listeners }).program ?? "", /port: 61999/);
  assert.equal(snippetOf("ruby", { host: "h", origin: "", listeners: [] }).program, null);
});

// The compiler finds missing words; it does not find empty ones, nor a function that leaves out its argument.
test("every word is there in both languages", () => {
  const check = (english: unknown, japanese: unknown, path: string): void => {
    if (typeof english === "object" && english !== null) {
      const other = japanese as Record<string, unknown>;
      assert.deepEqual(Object.keys(other).sort(), Object.keys(english).sort(), path);
      for (const [key, value] of Object.entries(english)) check(value, other[key], `${path}.${key}`);
      return;
    }
    for (const word of [english, japanese]) {
      const places = ["<1>", "<2>"].slice(0, typeof english === "function" ? english.length : 0);
      const text = typeof word === "function" ? String((word as (...values: string[]) => string)(...places)) : String(word);
      assert.notEqual(text.trim(), "", path);
      for (const place of places) assert.ok(text.includes(place), `${path} leaves out ${place}`);
    }
  };
  check(en, ja, "words");
});
