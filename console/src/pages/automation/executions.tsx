// The latest executions, and one of them with its children.

import { useState } from "preact/hooks";
import { change, path, read, type Execution } from "../../api/automation.ts";
import { visibleText, type Format } from "../../format.ts";
import { failureOf, useLoad } from "../../load.ts";
import { useLocale } from "../../locale.ts";
import type { Failure } from "../../api/client.ts";
import { Badge, type Tone } from "../../parts/badge.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Facts, type Fact } from "../../parts/facts.tsx";
import { FailureNote } from "../../parts/failure.tsx";
import { Choice, Field } from "../../parts/field.tsx";
import { Link } from "../../parts/link.tsx";
import { Loaded } from "../../parts/loaded.tsx";
import { Name } from "../../parts/name.tsx";
import { Section } from "../../parts/page.tsx";
import { Table, type Column } from "../../parts/table.tsx";
import { Values } from "../../parts/values.tsx";
import { addressOf, navigate } from "../../route.ts";
import type { Words } from "../../words/en.ts";

const INTERVAL_MS = 2_000;
const LATEST_MAX = 100;
const RESULT_LENGTH_MAX = 20_000;

const STATUSES = ["", "requested", "scheduled", "delayed", "running", "pausing", "paused", "succeeded", "failed", "timeout", "canceling", "canceled", "abandoned"] as const;
const FINAL: ReadonlySet<string> = new Set(["succeeded", "failed", "timeout", "canceled", "abandoned"]);

export function Executions({ query }: { query: URLSearchParams }) {
  const id = query.get("execution");
  return id === null ? <Latest /> : <One key={id} id={id} />;
}

function Latest() {
  const { words } = useLocale();
  const w = words.automation;
  const [status, setStatus] = useState<(typeof STATUSES)[number]>("");
  const [action, setAction] = useState("");
  const executions = useLoad(
    `executions ${status} ${action}`,
    (signal) => read<Execution[]>("/executions", { limit: LATEST_MAX, parent: "null", status, action: action.trim(), sort: "-start_timestamp", exclude_attributes: "result,parameters" }, signal),
    INTERVAL_MS,
  );
  return (
    <Section title={w.latest}>
      <div class="columns">
        <Choice label={w.status} value={status} onChange={setStatus} options={STATUSES.map((value) => ({ value, label: value === "" ? w.every : value }))} />
        <Field label={w.action} value={action} hint={w.actionHint} onInput={setAction} />
      </div>
      <Loaded data={executions}>{(rows) => <ExecutionTable label={w.latest} rows={rows} />}</Loaded>
    </Section>
  );
}

function ExecutionTable({ label, rows }: { label: string; rows: readonly Execution[] }) {
  const { words, format } = useLocale();
  const w = words.automation;
  const columns: readonly Column<Execution>[] = [
    {
      label: w.action,
      cell: (execution) => (
        <Link to={addressOf("automation", { part: "executions", execution: execution.id })}>
          <Name text={execution.action.ref} />
        </Link>
      ),
    },
    { label: w.status, cell: (execution) => <Status status={execution.status} /> },
    { label: w.started, cell: (execution) => format.dateTime(Date.parse(execution.start_timestamp)) },
    { label: w.took, isNumber: true, cell: (execution) => format.duration(tookMs(execution)) },
    { label: w.user, cell: (execution) => <Name text={execution.context?.user ?? ""} /> },
    { label: w.rule, cell: (execution) => <Name text={execution.rule?.ref ?? ""} /> },
  ];
  return <Table label={label} columns={columns} rows={rows} empty={w.noExecutions} />;
}

function One({ id }: { id: string }) {
  const { words, format } = useLocale();
  const w = words.automation;
  const [failure, setFailure] = useState<Failure | null>(null);
  const [isCancelling, setCancelling] = useState(false);
  const execution = useLoad(`execution ${id}`, (signal) => read<Execution>("/executions" + path(id), {}, signal), INTERVAL_MS);
  const act = (work: Promise<unknown>): void => {
    setFailure(null);
    work.then(execution.reload, (error: unknown) => setFailure(failureOf(error)));
  };
  const again = async (): Promise<void> => {
    const made = await change<Execution>("post", "/executions" + path(id, "re_run"), {});
    navigate(addressOf("automation", { part: "executions", execution: made.id }));
  };
  return (
    <Loaded data={execution}>
      {(value) => (
        <>
          <Section
            title={value.action.ref}
            aside={
              <div class="actions">
                <Status status={value.status} />
                {FINAL.has(value.status) ? (
                  <button type="button" class="button small" onClick={() => act(again())}>
                    {w.runAgain}
                  </button>
                ) : (
                  <button type="button" class="button small danger-outline" onClick={() => setCancelling(true)}>
                    {w.cancelExecution}
                  </button>
                )}
              </div>
            }
          >
            {failure !== null && <FailureNote failure={failure} />}
            <Facts facts={factsOf(value, words, format)} />
            <h3>{w.parameters}</h3>
            <Values values={value.parameters ?? {}} label={w.parameters} />
            <h3>{w.result}</h3>
            <pre tabIndex={0} role="group" aria-label={w.result}>
              {resultText(value.result)}
            </pre>
          </Section>
          {(value.children?.length ?? 0) > 0 && <Children id={id} />}
          {isCancelling && (
            <Dialog
              title={w.cancelExecutionOf(value.action.ref)}
              action={w.cancelExecution}
              isDanger
              onAct={async () => {
                await change("delete", "/executions" + path(id));
                setCancelling(false);
                execution.reload();
              }}
              onClose={() => setCancelling(false)}
            >
              <p>{w.cancelExecutionText}</p>
            </Dialog>
          )}
        </>
      )}
    </Loaded>
  );
}

function Children({ id }: { id: string }) {
  const { words } = useLocale();
  const w = words.automation;
  const children = useLoad(`children ${id}`, (signal) => read<Execution[]>("/executions" + path(id, "children"), { depth: -1 }, signal), INTERVAL_MS);
  return (
    <Section title={w.tasks}>
      <Loaded data={children}>{(rows) => <Tree parent={id} rows={rows} />}</Loaded>
    </Section>
  );
}

function Tree({ parent, rows }: { parent: string; rows: readonly Execution[] }) {
  const { format } = useLocale();
  const own = rows.filter((row) => row.parent === parent).sort((a, b) => a.start_timestamp.localeCompare(b.start_timestamp));
  return (
    <ul class="tree">
      {own.map((row) => (
        <li key={row.id}>
          <Link to={addressOf("automation", { part: "executions", execution: row.id })}>
            <Name text={row.action.ref} />
          </Link>{" "}
          <Status status={row.status} /> <span class="quiet">{format.duration(tookMs(row))}</span>
          {rows.some((other) => other.parent === row.id) && <Tree parent={row.id} rows={rows} />}
        </li>
      ))}
    </ul>
  );
}

function factsOf(execution: Execution, words: Words, format: Format): Fact[] {
  const w = words.automation;
  const facts: Fact[] = [
    [w.started, format.dateTime(Date.parse(execution.start_timestamp))],
    [w.took, format.duration(tookMs(execution))],
    [w.user, <Name text={execution.context?.user ?? ""} />],
    [w.rule, <Name text={execution.rule?.ref ?? ""} />],
    [w.id, <Name text={execution.id} />],
  ];
  if (execution.parent != null) {
    facts.push([w.parent, <Link to={addressOf("automation", { part: "executions", execution: execution.parent })}>{execution.parent}</Link>]);
  }
  return facts;
}

function Status({ status }: { status: string }) {
  return <Badge tone={toneOf(status)}>{status}</Badge>;
}

function toneOf(status: string): Tone {
  if (status === "succeeded") return "good";
  if (status === "failed" || status === "timeout" || status === "abandoned") return "danger";
  return FINAL.has(status) ? "plain" : "warn";
}

function tookMs(execution: Execution): number | null {
  if (typeof execution.elapsed_seconds === "number") return execution.elapsed_seconds * 1_000;
  if (typeof execution.end_timestamp !== "string") return null;
  return Date.parse(execution.end_timestamp) - Date.parse(execution.start_timestamp);
}

function resultText(result: unknown): string {
  const text = typeof result === "string" ? result : (JSON.stringify(result ?? null, null, 2) ?? "");
  return visibleText(text.length > RESULT_LENGTH_MAX ? text.slice(0, RESULT_LENGTH_MAX) + "…" : text);
}
